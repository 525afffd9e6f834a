import type { DebugState } from '../../support/debug-state.js';
import { compose, docker, untilHealthy } from '../../support/docker.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/free-port.js';
import { send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';

const SERVING_WITHIN_MILLIS = 60_000;

/** docker-compose.yml while it runs. */
export class Composition {
  private constructor(
    /** The load balancer's URL. */
    readonly url: string,
    /** The load balancer's URL for administrators. */
    readonly adminUrl: string,
    private readonly environment: Readonly<Record<string, string>>,
  ) {}

  /** `docker compose up`, with these settings in its environment. Resolves when all replicas are in service. */
  static async up(settings: Readonly<Record<string, string>>): Promise<Composition> {
    const [port, adminPort] = [String(await freePort()), String(await freePort())];
    const urls = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`] as const;
    const composition = new Composition(...urls, {
      COMPOSE_PROJECT_NAME: uniqueKey(),
      SLUICE_PORT: port,
      SLUICE_ADMIN_PORT: adminPort,
      ...settings,
    });
    try {
      await composition.#compose('up', '--detach');
      await composition.#untilServing();
    } catch (error) {
      await composition.down();
      throw error;
    }
    return composition;
  }

  /** The containers of the replicas. */
  async replicas(): Promise<string[]> {
    return (await this.#compose('ps', '--quiet', 'sluice')).trim().split('\n');
  }

  /** The log of a container. */
  log(container: string): Promise<string> {
    return docker('logs', container);
  }

  /** Stops a replica as a new version would, and starts it again; resolves when it is in service. */
  async restart(container: string): Promise<void> {
    await docker('stop', '--time', '20', container);
    await docker('start', container);
    await untilHealthy(container);
    await this.#untilServing();
  }

  /** Resolves when exactly `count` requests wait for the key. The balancer does not publish /debug; a replica has it. */
  async untilWaiting(key: string, count: number): Promise<void> {
    const [replica = ''] = await this.replicas();
    const url = `http://localhost:8081/debug/${encodeURIComponent(key)}`;
    const script = `fetch('${url}').then((answer) => answer.text()).then(console.log)`;
    await until(async () => {
      const state = JSON.parse(await docker('exec', replica, 'node', '-e', script)) as DebugState;
      return state.NumWaiting === count;
    });
  }

  /** Asks until the balancer knows a ready replica. */
  async #untilServing(): Promise<void> {
    const endsAt = performance.now() + SERVING_WITHIN_MILLIS;
    await until(async () => {
      if (performance.now() > endsAt) throw new Error(await this.#compose('logs'));
      try {
        return (await send(this.url, 'GET', '/readyz')).status === 200;
      } catch {
        return false;
      }
    }, Infinity);
  }

  async down(): Promise<void> {
    await this.#compose('down', '--timeout', '20', '--volumes');
  }

  #compose(...args: string[]): Promise<string> {
    return compose(this.environment, ...args);
  }
}

import { type FaultProxy, startFaultProxy } from '../../fault-proxy.js';
import type { RedisProcess } from '../../redis-process.js';

const REDIRECT = new URL('redirect.mjs', import.meta.url).href;

/** The network between a replica and the servers of a store: a proxy in front of each. */
export class Network {
  private constructor(
    private readonly servers: readonly RedisProcess[],
    private readonly proxies: readonly FaultProxy[],
  ) {}

  static async start(servers: readonly RedisProcess[]): Promise<Network> {
    return new Network(
      servers,
      await Promise.all(servers.map(({ port }) => startFaultProxy(port))),
    );
  }

  /** The variables with which a replica goes this way. */
  get environment(): Record<string, string> {
    const redirects = this.servers.map(({ port }, i) => [port, this.proxies[i]!.port]);
    return {
      NODE_OPTIONS: `--import ${REDIRECT}`,
      CHAOS_REDIRECTS: JSON.stringify(Object.fromEntries(redirects)),
    };
  }

  cut(): void {
    for (const proxy of this.proxies) proxy.cut();
  }

  /** Replies are late by so much, those for which `isLate` says so; none overtakes another. */
  delayReplies(millis: number, isLate: () => boolean): void {
    for (const { toClient } of this.proxies) toClient.delay(millis, isLate);
  }

  pass(): void {
    for (const { toClient } of this.proxies) toClient.pass();
  }

  stop(): void {
    for (const proxy of this.proxies) proxy.stop();
  }
}

import { setTimeout as delay } from 'node:timers/promises';

import { send } from '../../support/http-client.js';
import type { ReplicaProcess } from '../../support/replica-process.js';
import { until } from '../../support/until.js';
import type { Balancer } from './balancer.js';
import type { Deployment } from './deployment.js';
import type { Service } from './service.js';

/** How a replica that was replaced ended. */
export interface Ended {
  readonly replica: ReplicaProcess;
  readonly code: number | NodeJS.Signals;
}

interface RolloutParts {
  readonly deployment: Deployment;
  /** How long it takes to remove a replica from the endpoints after the decision to end it. */
  readonly endpointsDelayMillis: number;
  readonly balancer: Balancer;
  readonly service: Service;
  readonly start: () => Promise<ReplicaProcess>;
}

/** Replaces replicas as a Deployment does with `maxSurge: 1` and `maxUnavailable: 0`. */
export class Rollout {
  readonly ended: Ended[] = [];
  /** The replicas that serve now. */
  readonly replicas: ReplicaProcess[];

  constructor(
    private readonly parts: RolloutParts,
    first: readonly ReplicaProcess[],
  ) {
    this.replicas = [...first];
  }

  /** Replaces each replica that serves now, one after another. */
  async run(): Promise<void> {
    for (const old of [...this.replicas]) {
      await this.#add();
      await this.#remove(old);
    }
  }

  async #add(): Promise<void> {
    const replica = await this.parts.start();
    await until(async () => (await send(replica.url, 'GET', '/readyz')).status === 200);
    this.replicas.push(replica);
    await this.#publishEndpoints();
  }

  /** Does the work of the kubelet for a pod and, at the same time, of the endpoints' controller. */
  async #remove(old: ReplicaProcess): Promise<void> {
    const { terminationGraceMillis } = this.parts.deployment;
    const forgotten = this.#forget(old);
    const kill = setTimeout(() => old.signal('SIGKILL'), terminationGraceMillis);
    const code = await old.kill('SIGTERM');
    clearTimeout(kill);
    await forgotten;
    this.ended.push({ replica: old, code });
  }

  async #forget(old: ReplicaProcess): Promise<void> {
    await delay(this.parts.endpointsDelayMillis);
    this.replicas.splice(this.replicas.indexOf(old), 1);
    await this.#publishEndpoints();
  }

  #publishEndpoints(): Promise<void> {
    const urls = this.replicas.map(({ url }) => url);
    this.parts.service.setEndpoints(urls);
    return this.parts.balancer.setEndpoints(urls);
  }
}

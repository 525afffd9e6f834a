import { setTimeout as delay } from 'node:timers/promises';

import { freePort } from '../../scripts/lib/free-port.mjs';
import { RedisServer } from './processes.mjs';

const SLOTS = 16_384;

/** A Redis Cluster of the benchmark's own: primaries with equal parts of the slots, without replicas. */
export class RedisCluster {
  /** Resolves when all primaries know the slots of all. */
  static async start(program, primaries) {
    const servers = [];
    for (let i = 0; i < primaries; i += 1) servers.push(await startNode(program));
    for (const [i, { client }] of servers.entries()) {
      const [first, next] = [i, i + 1].map((part) => Math.floor((part * SLOTS) / primaries));
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
      await client.call('CLUSTER', 'ADDSLOTSRANGE', first, next - 1);
      const { port, busPort } = servers[0];
      if (i > 0) await client.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
    }
    const cluster = new RedisCluster(servers);
    for (const { client } of servers) {
      while (!(await isComplete(client, primaries))) await delay(50);
    }
    return cluster;
  }

  constructor(servers) {
    this.servers = servers;
  }

  /** The settings by which a replica uses it. */
  get settings() {
    return { REDIS_MODE: 'cluster', REDIS_URL: this.servers.map(({ url }) => url).join() };
  }

  /** Of all servers together. */
  cpuMicros() {
    return this.#sum((server) => server.cpuMicros());
  }

  /** To all servers together. */
  scriptCalls() {
    return this.#sum((server) => server.scriptCalls());
  }

  async #sum(figure) {
    const each = await Promise.all(this.servers.map(figure));
    return each.reduce((sum, value) => sum + value, 0);
  }

  async stop() {
    for (const server of this.servers) await server.stop();
  }
}

async function startNode(program) {
  const busPort = await freePort();
  // A node that has met no other does not know its address.
  const address = ['--cluster-announce-ip', '127.0.0.1'];
  const options = ['--cluster-enabled', 'yes', '--cluster-port', busPort, ...address];
  return Object.assign(await RedisServer.start(program, options), { busPort });
}

async function isComplete(client, primaries) {
  const [info, slots] = [
    await client.call('CLUSTER', 'INFO'),
    await client.call('CLUSTER', 'SLOTS'),
  ];
  return info.includes('cluster_state:ok') && slots.length === primaries;
}

import { saturate } from './load.mjs';
import { progress } from './progress.mjs';
import { ratio, summary } from './statistics.mjs';

const WARM_UP_SECONDS = 3;

/**
 * Measures two servers under the same load, in turns, and stops them.
 * @returns the results of each, and the decisions of the second as a part of the first one's
 */
export async function inTurns(title, [first, second], load, { rounds, seconds }) {
  const servers = [first, second];
  const runs = new Map(servers.map((server) => [server, []]));
  for (const server of servers) {
    progress(`${title}: ${server.name} warms up`);
    await warmUp(server, load);
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const [server, measured] of runs) {
      progress(`${title}: round ${round + 1} of ${rounds}, ${server.name}`);
      const cpu = await server.cpuMicros();
      const { perSecond, answers } = await saturate(server, { ...load, seconds });
      measured.push({ perSecond, cpuMicros: ((await server.cpuMicros()) - cpu) / answers });
    }
  }
  await Promise.all(servers.map((server) => server.stop()));
  const values = (server, figure) => runs.get(server).map((run) => run[figure]);
  const summarize = (server) => ({
    perSecond: summary(values(server, 'perSecond')),
    cpuMicros: summary(values(server, 'cpuMicros')),
  });
  return {
    first: summarize(first),
    second: summarize(second),
    secondToFirst: ratio(values(second, 'perSecond'), values(first, 'perSecond')),
  };
}

/** Asks for each key at least once. */
async function warmUp(server, load) {
  for (let seconds = WARM_UP_SECONDS; ; seconds *= 2) {
    const { answers } = await saturate(server, { ...load, inOrder: true, seconds });
    if (answers >= load.keys) return;
  }
}

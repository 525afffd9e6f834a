// What it costs to log an answer: the embedded limiter with LOG_2XX=true and without, in turns.
import { saturate } from '../lib/load.mjs';
import { Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const LOAD = { name: 'hot', keys: 1 };
const WARM_UP_SECONDS = 3;

export async function loggedAnswers({ rounds, seconds }) {
  const [unlogged, logged] = await Promise.all([start('unlogged', false), start('logged', true)]);
  const runs = new Map([unlogged, logged].map((server) => [server, []]));
  for (const server of runs.keys()) {
    progress(`logged answers: ${server.name} warms up`);
    await saturate(server, { ...LOAD, seconds: WARM_UP_SECONDS });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const [server, measured] of runs) {
      progress(`logged answers: round ${round + 1} of ${rounds}, ${server.name}`);
      measured.push(await measure(server, seconds));
    }
  }
  await Promise.all([unlogged.stop(), logged.stop()]);
  const values = (server, figure) => runs.get(server).map((run) => run[figure]);
  const summarize = (server) => ({
    perSecond: summary(values(server, 'perSecond')),
    cpuMicros: summary(values(server, 'cpuMicros')),
  });
  return {
    unlogged: summarize(unlogged),
    logged: summarize(logged),
    loggedToUnlogged: ratio(values(logged, 'perSecond'), values(unlogged, 'perSecond')),
  };
}

/** The lines go nowhere: what reads them is not Sluice's. */
function start(name, isLogged) {
  const environment = {
    MAX_REQUESTS: '1000000000',
    LOG_LEVEL: 'info',
    LOG_2XX: String(isLogged),
  };
  return Server.start(name, SLUICE, environment, 'ignore');
}

async function measure(server, seconds) {
  const cpu = await server.cpuMicros();
  const { perSecond, answers } = await saturate(server, { ...LOAD, seconds });
  return { perSecond, cpuMicros: ((await server.cpuMicros()) - cpu) / answers };
}

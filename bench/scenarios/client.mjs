// The Node client with the checks of 256 callers in one process, against single checks, and against Limitador.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { saturate } from '../lib/load.mjs';
import { programsOf, startProgram } from '../lib/programs.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const CALLERS = 256;
const CALLERS_PROGRAM = fileURLToPath(new URL('../lib/callers.mjs', import.meta.url));
const LOADS = { oneKey: { name: 'hot', keys: 1 }, manyKeys: { name: 'key', keys: 5000 } };
const LIMIT = 1_000_000_000;

export async function client(options) {
  const { redisProgram } = options;
  const [sluice, limitador] = await Promise.all(
    ['sluice', 'limitador-redis'].map((name) => {
      const program = programsOf(options).find((one) => one.name === name);
      return program && startProgram(program, { redisProgram, limit: LIMIT });
    }),
  );
  const measured = { callers: CALLERS };
  for (const [name, load] of Object.entries(LOADS)) {
    measured[name] = await inTurns(name, load, { sluice, limitador }, options);
  }
  await Promise.all([sluice.stop(), limitador?.stop()]);
  return measured;
}

/** All kinds of requests in turns, after a round that is not counted. */
async function inTurns(name, load, { sluice, limitador }, { rounds, seconds }) {
  const ways = {
    client: (turn) => byCallers('client', sluice.server, turn),
    nodeSingle: (turn) => byCallers('single', sluice.server, turn),
    single: (turn) => saturate(sluice.server, turn),
    ...(limitador ? { limitador: (turn) => saturate(limitador.server, turn) } : {}),
  };
  const rates = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  for (let round = -1; round < rounds; round += 1) {
    for (const [way, ask] of Object.entries(ways)) {
      const turn = round < 0 ? 'warm-up' : `round ${round + 1} of ${rounds}`;
      progress(`client: ${name}, ${turn}, ${way}`);
      const { perSecond } = await ask({ ...load, seconds });
      if (round >= 0) rates[way].push(perSecond);
    }
  }
  const summaries = Object.entries(rates).map(([way, values]) => [way, summary(values)]);
  return {
    perSecond: Object.fromEntries(summaries),
    toSingle: ratio(rates.client, rates.single),
    toNodeSingle: ratio(rates.client, rates.nodeSingle),
    toLimitador: rates.limitador && ratio(rates.client, rates.limitador),
  };
}

async function byCallers(mode, server, { name, keys, seconds }) {
  const words = [mode, server.url, name, keys, CALLERS, seconds].map(String);
  const callers = spawn(process.execPath, [CALLERS_PROGRAM, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output, [code]] = await Promise.all([text(callers.stdout), once(callers, 'close')]);
  if (code !== 0) throw new Error(`the callers (${mode}) have ended with ${code}`);
  const result = JSON.parse(output);
  if (result.wrong > 0) throw new Error(`${result.wrong} of ${result.answers} answers are wrong`);
  return result;
}

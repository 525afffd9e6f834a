// What it costs to log an answer: the embedded limiter with LOG_2XX=true and without, in turns.
import { inTurns } from '../lib/in-turns.mjs';
import { Server, SLUICE } from '../lib/processes.mjs';

const LOAD = { name: 'hot', keys: 1 };

export async function loggedAnswers(options) {
  const servers = [await start('unlogged', false), await start('logged', true)];
  const { first, second, secondToFirst } = await inTurns('logged answers', servers, LOAD, options);
  return { unlogged: first, logged: second, loggedToUnlogged: secondToFirst };
}

/** The lines are discarded: their reader is no part of Sluice. */
function start(name, isLogged) {
  const environment = {
    MAX_REQUESTS: '1000000000',
    LOG_LEVEL: 'info',
    LOG_2XX: String(isLogged),
  };
  return Server.start(name, SLUICE, environment, 'ignore');
}

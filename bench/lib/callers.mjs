// node callers.mjs <'client' or 'single'> <url> <name of the keys> <keys> <callers> <seconds>
// Callers in one process. Each sends its next check as soon as it has an answer: with the Node client, or with a
// request for each check. Prints their results. The first second is not counted.
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

const [mode, url, name, keys, callers, seconds] = process.argv.slice(2);

const isApproved = mode === 'client' ? await byClient() : bySingleChecks();
let answers = 0;
let wrong = 0;
let ended = false;
const all = Promise.all(Array.from({ length: Number(callers) }, callAgainAndAgain));
await delay(1000);
const [answersBefore, beganAt] = [answers, performance.now()];
await delay(Number(seconds) * 1000);
const counted = answers - answersBefore;
const elapsed = (performance.now() - beganAt) / 1000;
ended = true;
await all;
console.log(JSON.stringify({ perSecond: counted / elapsed, answers, wrong }));
process.exit(0);

async function callAgainAndAgain() {
  while (!ended) {
    const approved = await isApproved(`${name}-${Math.ceil(Math.random() * Number(keys))}`);
    answers += 1;
    if (!approved) wrong += 1;
  }
}

async function byClient() {
  const { SluiceClient } = await import('../../clients/node/dist/index.js');
  const client = new SluiceClient(url);
  return async (key) => (await client.check(key)).approved;
}

function bySingleChecks() {
  const agent = new Agent({ keepAlive: true, maxSockets: Number(callers) });
  return async (key) => {
    const response = await new Promise((resolve, reject) => {
      request(`${url}/rate/${key}`, { method: 'POST', agent }, resolve).on('error', reject).end();
    });
    await text(response);
    return response.statusCode === 200;
  };
}

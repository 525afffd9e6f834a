// Callers that make several calls one after the other, each with what the one before answered.
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';

const CALLERS = 64;

/**
 * Has callers go through a flow again and again.
 * @param {{seconds: number, keys: number, flow: Function}} load `flow(call, key, caller)` makes calls: `call(method, path)`
 *   returns the body of the answer as JSON, and rejects unless that is a 200
 * @returns how many flows have ended
 */
export async function flows({ url }, { seconds, keys, flow }) {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  const call = async (method, path) => {
    const response = await new Promise((resolve, reject) => {
      request(url + path, { method, agent }, resolve)
        .on('error', reject)
        .end();
    });
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${body}`);
    return JSON.parse(body);
  };
  const endsAt = performance.now() + seconds * 1000;
  let answers = 0;
  const caller = async (_, number) => {
    while (performance.now() < endsAt) {
      await flow(call, `/rate/key-${number % keys}`, number);
      answers += 1;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  agent.destroy();
  return { answers };
}

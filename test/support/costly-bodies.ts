import { Agent, request } from 'node:http';

import { MAX_BODY_BYTES } from '../../src/http/intake/json-array.js';

/** Less than the largest body, for what is around the parts. */
const BYTES = MAX_BODY_BYTES - 4096;

function fill(part: (index: number) => string, length = BYTES): string {
  const parts: string[] = [];
  for (let index = 0, left = length; left > 0; index += 1) {
    const text = part(index);
    parts.push(text);
    left -= text.length + 1;
  }
  return parts.slice(0, -1).join();
}

/** Bodies of bulk requests whose parsing costs the most, by what they have. No element of them is valid. */
export const COSTLY_BODIES: Readonly<Record<string, string>> = {
  'names of an element': `[{${fill((i) => `"${i}":1`)}}]`,
  'names of many elements': `[${fill((i) => `{${fill((j) => `"${i}.${j}":1`, 1060)}}`)}]`,
  'the same name': `[{${fill(() => '"key":{}')}}]`,
  'nested arrays': '['.repeat(BYTES),
  'closed nested arrays': '['.repeat(BYTES / 2) + ']'.repeat(BYTES / 2),
  'nested objects of many elements': `[${fill(() => `${'{"":'.repeat(220)}1${'}'.repeat(220)}`)}]`,
  'empty objects': `[${fill(() => '{}')}]`,
  'empty objects of an element': `[[${fill(() => '{}')}]]`,
  'a text of escapes': `["${'\\u0101'.repeat(BYTES / 6)}"]`,
  digits: `[${'1'.repeat(BYTES)}]`,
  'white space': `[${' '.repeat(BYTES)}]`,
};

/** Costly bodies that are sent one after the other, on several connections. */
export interface Flood {
  /** Resolves when all are answered. Throws if an answer has another status than these answers have. */
  stop(): Promise<void>;
}

/** A body beyond the budget gets the last. */
const STATUSES: readonly (number | undefined)[] = [200, 400, 503];

export function floodWithBodies(url: string, connections: number): Flood {
  const agent = new Agent({ keepAlive: true });
  const bodies = Object.values(COSTLY_BODIES);
  let goesOn = true;
  const send = async (first: number): Promise<void> => {
    for (let i = first; goesOn; i += 1) {
      const body = bodies[i % bodies.length]!;
      const status = await statusOf(url, agent, body);
      if (!STATUSES.includes(status)) throw new Error(`a costly body is answered ${status}`);
    }
  };
  const sent = Promise.allSettled(Array.from({ length: connections }, (_, i) => send(i)));
  return {
    stop: async () => {
      goesOn = false;
      const failed = (await sent).find((result) => result.status === 'rejected');
      agent.destroy();
      if (failed) throw failed.reason;
    },
  };
}

function statusOf(url: string, agent: Agent, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/rate`, {
      method: 'POST',
      agent,
      headers: { 'Content-Type': 'application/json' },
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      response.on('error', reject);
      response.on('end', () => {
        resolve(response.statusCode);
      });
      response.resume();
    });
    sent.end(body);
  });
}

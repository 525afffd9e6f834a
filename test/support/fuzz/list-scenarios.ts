import { TurnsAccount } from '../turns-account.js';
import { until } from '../until.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import { LANES, WEIGHTS } from './declared.js';
import type { RawClient } from './raw-client.js';
import { answerOf, requestIdOf, type Session } from './scenarios.js';
import { waitingFor } from './target.js';

const NAMES_OF_GROUPS = [...Object.keys(WEIGHTS), 'a', '__proto__', ':^*~@ '];

/** Checks that wait in lanes or groups. Some clients disconnect; releases let the others have their turns in the order promised. */
export async function lists(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const sort = random.pick(['laned', 'fair'] as const);
  const key = requests.freshKey(sort);
  const turns = new TurnsAccount();
  const clients = new Map<string, RawClient>();
  let holder = requestIdOf(await answerOf(session, requests.check(key, 'maxRequests=1')));
  for (let count = random.whole(2, 8); count > 0; count -= 1) {
    const [parameter, list] = drawList(session, sort);
    const waiting = requests.check(key, `canWait=true&${parameter}`);
    const client = await session.open();
    await client.send(waiting.bytes, random);
    target.keys.sent(client.sent);
    const id = String(clients.size);
    turns.joined({ id, list, hits: 1, arrival: clients.size });
    clients.set(id, client);
    await until(async () => (await waitingFor(target, key)) === clients.size);
  }
  for (const [id, client] of clients) {
    if (!random.chance(0.3)) continue;
    turns.left(id);
    clients.delete(id);
    await client.part(random.pick(['half-close', 'reset', 'destroy']));
    await until(async () => (await waitingFor(target, key)) === clients.size);
  }
  while (clients.size > 0) {
    await answerOf(session, requests.release(key, holder ?? '', [200]));
    await Promise.race([...clients.values()].map((client) => client.answers(1)));
    const [served, ...more] = [...clients].filter(([, { reader }]) => reader.responses.length > 0);
    if (!served || more.length > 0) {
      session.violated(`${more.length + (served ? 1 : 0)} have turns after one release`, key);
      break;
    }
    const [id, client] = served;
    turns.granted([id]);
    clients.delete(id);
    holder = requestIdOf(client.reader.responses[0]);
    await client.part('destroy');
  }
  for (const client of clients.values()) await client.part('destroy');
  for (const violation of turns.violations) session.violated(violation, key);
}

/** @returns a parameter of a check, and the list in which the check waits with it */
function drawList({ random }: Session, sort: 'laned' | 'fair'): [parameter: string, QueueList] {
  if (sort === 'laned') {
    const lane = random.pick(LANES);
    const headStartMillis = 'head_start_millis' in lane ? lane.head_start_millis : 0;
    // Checks that name no lane are in the last one.
    const parameter = lane === LANES.at(-1) && random.chance(0.5) ? '' : `lane=${lane.name}`;
    return [parameter, { kind: 'lane', name: lane.name, headStartMillis }];
  }
  const name = random.pick(NAMES_OF_GROUPS);
  const weight = Object.hasOwn(WEIGHTS, name) ? WEIGHTS[name]! : 1;
  const list = { kind: 'group', name, weight, maxRequests: undefined } as const;
  return [`group=${encodeURIComponent(name)}`, list];
}

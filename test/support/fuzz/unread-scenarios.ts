import { largeRequests } from '../unread-answers.js';
import { expectStatus, type Session } from './scenarios.js';
import { mightyHeaders, vitals } from './target.js';

const MIB = 1024 * 1024;
/** With what other scenarios take meanwhile. */
const MOST_GROWTH_BYTES = 256 * MIB;
const UNREAD_CONNECTIONS = 10;
const UNREAD_REQUESTS = 100;
/** How often the service is asked for its memory meanwhile. */
const LOOKS = 10;

/** Requests for large answers, which are read late or never. */
export function unread(session: Session): Promise<void> {
  return session.random.chance(0.7) ? readLate(session) : readNever(session);
}

/** Connections with many requests. The bytes of answers that a service keeps are bounded. */
async function readNever(session: Session): Promise<void> {
  const { random, target } = session;
  const texts = largeRequests(mightyHeaders(target)).map((text) => text.repeat(UNREAD_REQUESTS));
  const before = await vitals(target);
  const clients = await Promise.all(
    Array.from({ length: UNREAD_CONNECTIONS }, async () => {
      const client = await session.open();
      client.stopReading();
      client.sendWhole(random.pick(texts));
      return client;
    }),
  );
  let most = 0;
  for (let look = 0; look < LOOKS; look += 1) {
    most = Math.max(most, (await vitals(target)).residentBytes - before.residentBytes);
  }
  for (const client of clients) await client.part(random.pick(['reset', 'destroy']));
  if (most > MOST_GROWTH_BYTES) {
    session.violated(`unread answers take ${Math.round(most / MIB)} MiB`, '');
  }
}

/** A connection with some requests, and a check behind them. All are answered when the client reads. */
async function readLate(session: Session): Promise<void> {
  const { random, requests, target } = session;
  // The largest file takes this process too long to read.
  const [, ...texts] = largeRequests(mightyHeaders(target));
  const large = Array.from({ length: random.whole(1, 3) }, () => random.pick(texts));
  const check = requests.check(requests.freshKey());
  const client = await session.open((index) => index === large.length && check.isHead);
  client.stopReading();
  await client.send(large.join('') + check.bytes, random);
  for (let look = random.whole(0, 5); look > 0; look -= 1) await vitals(target);
  client.goOnReading();
  await client.answers(large.length + 1);
  for (const index of large.keys()) {
    // Other scenarios may take the budget for bodies.
    expectStatus(session, client, { statuses: [200, 503], isHead: false }, index);
  }
  expectStatus(session, client, check, large.length);
  if (client.reader.problem) session.violated(client.reader.problem, client.sent);
  await client.part('destroy');
}

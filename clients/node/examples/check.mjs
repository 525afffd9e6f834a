import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

// Both checks travel in one request, since they are made in one tick of the event loop.
const [first, second] = await Promise.all([
  sluice.check('report', { maxRequests: 1 }),
  sluice.check('report'),
]);
console.log('first:', first.approved, 'second:', second.approved);

// The place in the queue is given up after ten seconds, or when a `signal` is aborted.
const waiting = sluice.wait('report', { timeoutMillis: 10_000 });
await sluice.release('report', first.requestId);
console.log('after a release:', (await waiting).approved);

import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

// In place of calls that have used up most of the minute.
const used = await sluice.check('shared-vendor', { hits: 5000 });

const turns = [];
const call = async (options) => {
  const requestId = await sluice.permit('shared-vendor', options);
  turns.push(options.group);
  // In place of the next minute.
  await sluice.release('shared-vendor', requestId);
};

const calls = [];
for (const tenant of ['noisy', 'noisy', 'noisy', 'noisy', 'acme', 'acme']) {
  await new Promise((onProgress) => {
    // Large enough that the next call has to wait for this one.
    const options = { group: tenant, hits: 6000, onProgress };
    calls.push(call(options));
  });
}
await sluice.release('shared-vendor', used.requestId);
await Promise.all(calls);
console.log(turns.join(', '));

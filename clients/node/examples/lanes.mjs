import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

// In place of calls that have used up most of the minute.
const used = await sluice.check('assistant', { lane: 'interactive', hits: 50 });

const turns = [];
const call = async (options) => {
  const requestId = await sluice.permit('assistant', options);
  turns.push(options.lane);
  // In place of the next minute.
  await sluice.release('assistant', requestId);
};

const calls = [];
for (const lane of ['batch', 'batch', 'batch', 'interactive']) {
  await new Promise((onProgress) => {
    // Large enough that the next call has to wait for this one.
    const options = { lane, hits: 40, onProgress };
    calls.push(call(options));
  });
}
await sluice.release('assistant', used.requestId);
await Promise.all(calls);
console.log(turns.join(', '));

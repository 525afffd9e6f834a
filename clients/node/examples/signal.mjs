import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

// If the permit is lost, the signal aborts the call, since another worker may begin.
const work = async (signal) => {
  const answer = await fetch(`${process.env.SLUICE_URL}/healthz`, { signal });
  return answer.text();
};
console.log(await sluice.withPermit('work', work, { maxRequests: 2 }));

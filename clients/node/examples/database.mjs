import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

let running = 0;
let most = 0;
const query = async () => {
  running += 1;
  most = Math.max(most, running);
  await new Promise((resolve) => setTimeout(resolve, 100));
  running -= 1;
};
await Promise.all(Array.from({ length: 9 }, () => sluice.withPermit('database', query)));
console.log(`9 queries, at most ${most} at a time`);

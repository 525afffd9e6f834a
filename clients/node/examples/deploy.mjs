import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

const deploy = async (name, signal) => {
  // Aborted if the slot is lost, as when Sluice can't be reached for a whole minute.
  signal.throwIfAborted();
  return `deployed ${name}`;
};
const done = await sluice.withPermit('deploy-shop', (signal) => deploy('shop', signal), {
  holdMillis: 60_000,
});
console.log(done);

import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient({
  // Nothing listens at the first.
  url: ['http://localhost:9', process.env.SLUICE_URL],
});

console.log((await sluice.check('news')).approved);

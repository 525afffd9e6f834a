import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

const first = await sluice.permit('crane', { maxRequests: 1 });
const onProgress = ({ position }) => {
  console.log('position:', position);
  void sluice.release('crane', first);
};
await sluice.permit('crane', { onProgress });
console.log('approved');

import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

const { quota } = await sluice.check('mail', { hits: 2, maxRequests: 10, quota: true });
console.log(quota);

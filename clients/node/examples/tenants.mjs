import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

const mayCall = async (tenant) => (await sluice.check(`api:tenant=${tenant}`)).approved;
console.log(await mayCall('acme'), await mayCall('other'));

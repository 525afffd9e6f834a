import { SluiceClient } from 'sluice/client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

// Two may be at work at a time, in whatever process they are. The others wait in their order.
const makeReport = async (name) => `the report of ${name}`;
const reports = ['Ann', 'Bob', 'Cem'].map((name) =>
  sluice.withPermit('reports', () => makeReport(name), { maxRequests: 2 }),
);
console.log(await Promise.all(reports));

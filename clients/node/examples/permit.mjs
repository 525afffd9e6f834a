import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

// At most two run at once across processes, however long each takes.
const makeReport = async (name) => `the report of ${name}`;
const reports = ['Ann', 'Bob', 'Cem'].map((name) =>
  sluice.withPermit('reports', () => makeReport(name), { maxRequests: 2 }),
);
console.log(await Promise.all(reports));

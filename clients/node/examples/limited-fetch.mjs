import { limitedFetch, SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

// Each host has a queue of its own, with the limit that the rules give to its key.
const politely = limitedFetch(sluice, { keyOf: ({ host }) => `calls to ${host}` });

const answer = await politely(`${process.env.SLUICE_URL}/healthz`);
console.log(await answer.text());

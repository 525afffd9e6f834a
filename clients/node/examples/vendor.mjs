import { createServer } from 'node:http';

import { limitedFetch, SluiceClient } from 'sluice-client';

// In place of the vendor: it refuses the first call for a second.
let calls = 0;
const vendor = createServer((request, response) => {
  calls += 1;
  response.writeHead(calls === 1 ? 429 : 200, { 'Retry-After': '1' }).end();
});
await new Promise((resolve) => vendor.listen(0, '127.0.0.1', resolve));

const sluice = new SluiceClient(process.env.SLUICE_URL);
const call = limitedFetch(sluice, { keyOf: () => 'vendor', pausesKey: true });

const url = `http://127.0.0.1:${vendor.address().port}/`;
const refused = await call(url);
// Asked after the pause, whichever process asks.
const answered = await call(url);
console.log(refused.status, answered.status);
vendor.close();

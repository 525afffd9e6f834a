import { createServer } from 'node:http';

import { limitedFetch, SluiceClient } from 'sluice-client';

// In place of the API: others have used most of its minute.
const api = createServer((request, response) => {
  response.writeHead(200, {
    'content-type': 'application/json',
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '9',
    'x-ratelimit-reset-requests': '51s',
    'x-ratelimit-limit-tokens': '10000',
    'x-ratelimit-remaining-tokens': '1500',
    'x-ratelimit-reset-tokens': '51s',
  });
  response.end('{"choices":[{"message":{"role":"assistant","content":"Hello"}}]}');
});
await new Promise((resolve) => api.listen(0, '127.0.0.1', resolve));

const sluice = new SluiceClient(process.env.SLUICE_URL);
const call = limitedFetch(sluice, {
  keyOf: () => 'model',
  hits: 500,
  reportsRemaining: { requests: 'requests', tokens: 'default' },
  pausesKey: true,
});

const url = `http://127.0.0.1:${api.address().port}/v1/chat/completions`;
const answer = await call(url, { method: 'POST' });
const { choices } = await answer.json();
console.log(choices[0].message.content);
api.close();

// The next check of any caller, of 100 tokens.
const { quota } = await sluice.check('model', { hits: 100, quota: true });
console.log(quota.map(({ name, remaining }) => `${name}: ${remaining}`));

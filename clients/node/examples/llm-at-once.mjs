import { limitedFetch, SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);
const fetchFor = (tenant) =>
  limitedFetch(sluice, {
    keyOf: () => 'llm-api',
    group: tenant,
    hits: 1000, // The tokens of a call at most.
    holdMillis: 30_000, // Counts in `at-once` until the answer has ended.
    correctsHits: true, // To the tokens that the answer says were used.
    pausesKey: true, // If the API answers 429,
    retries: 3, // and then the call is sent again.
  });

const url = `${process.env.LLM_URL}/v1/chat/completions`;
const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Say hello.' }] });
const tenants = ['acme', 'noisy'].map(fetchFor);
const calls = Array.from({ length: Number(process.argv[2]) }, async (_, i) => {
  const answer = await tenants[i % 2](url, { method: 'POST', body });
  return (await answer.json()).choices[0].message.content;
});
const answers = await Promise.all(calls);
console.log(answers.filter((text) => text === 'Hello').length, 'answers');

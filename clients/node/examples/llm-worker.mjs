import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);
const vendor = `${process.env.VENDOR_URL}/v1/chat/completions`;

const ask = async (prompt, signal, requestId) => {
  const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: prompt }] });
  const answer = await fetch(vendor, { method: 'POST', body, signal });
  if (!answer.ok) throw new Error(`the vendor answers ${answer.status}`);
  const { choices, usage } = await answer.json();
  // The true number of tokens takes the place of the estimate.
  await sluice.correct('llm', requestId, usage.total_tokens);
  return choices[0].message.content;
};

// If this process is killed, its permits lapse after 10 s.
const options = { hits: 500, holdMillis: 10_000 };
const answers = process.argv
  .slice(2)
  .map((prompt) =>
    sluice.withPermit('llm', (signal, requestId) => ask(prompt, signal, requestId), options),
  );
for (const answer of await Promise.all(answers)) console.log(answer);

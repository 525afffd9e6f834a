import { SluiceClient } from 'sluice-client';

const sluice = new SluiceClient(process.env.SLUICE_URL);

const callModel = async (prompt) => ({ text: prompt.toUpperCase(), tokens: prompt.length });
const ask = async (prompt) => {
  const requestId = await sluice.permit('llm', { hits: 500 });
  const { text, tokens } = await callModel(prompt);
  await sluice.correct('llm', requestId, tokens);
  return text;
};
console.log(await ask('hello'));

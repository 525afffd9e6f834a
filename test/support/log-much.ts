import { openConnection, requestText } from './raw-http.js';
import { until } from './until.js';

/** Their lines take more than a replica keeps of lines that wait, with what a pipe and its reader hold. */
const REQUESTS = 2000;
const AT_A_TIME = 50;
/** Lines have the headers of requests. */
const HEADERS = { 'X-Long': 'x'.repeat(2000) };

/** Sends a replica with `LOG_2XX` many requests whose log lines are long. Resolves when all are answered. */
export async function logMuch(url: string): Promise<void> {
  const connection = await openConnection(url);
  const requests = requestText('GET', '/healthz', HEADERS).repeat(AT_A_TIME);
  let answers = 0;
  let looked = 0;
  const countAnswers = (): number => {
    const { received } = connection;
    for (;;) {
      const found = received.indexOf('HTTP/1.1 200', looked);
      if (found === -1) return answers;
      answers += 1;
      looked = found + 1;
    }
  };
  for (let sent = AT_A_TIME; sent <= REQUESTS; sent += AT_A_TIME) {
    connection.write(requests);
    await until(() => countAnswers() >= sent);
  }
  connection.disconnect();
}

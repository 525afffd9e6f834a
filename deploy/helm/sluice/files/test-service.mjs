// `helm test` runs this: a check, a wait and releases, through the Service.
import { request } from 'node:http';
import { request as requestOverTls } from 'node:https';

const { SLUICE_URL, SLUICE_KEY, SLUICE_TOKEN } = process.env;
const TIMEOUT_MILLIS = 60_000;
/** Held, so that no window that ends meanwhile changes the outcome. */
const HOLD = 'holdMillis=30000';

function ask(method, path) {
  const url = new URL(`/rate/${encodeURIComponent(SLUICE_KEY)}${path}`, SLUICE_URL);
  const headers = SLUICE_TOKEN ? { authorization: `Bearer ${SLUICE_TOKEN}` } : {};
  // Like the probes, this does not verify the certificate: its names are those of clients.
  const options = { method, headers, timeout: TIMEOUT_MILLIS, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const asked = (url.protocol === 'https:' ? requestOverTls : request)(url, options, (answer) => {
      let text = '';
      answer.on('data', (data) => (text += data));
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve({ text, headers: answer.headers });
        else
          reject(new Error(`${method} ${url.pathname}${url.search}: ${answer.statusCode} ${text}`));
      });
    });
    asked.on('timeout', () => asked.destroy(new Error(`no answer in ${TIMEOUT_MILLIS} ms`)));
    asked.on('error', reject);
    asked.end();
  });
}

const approve = async (query) => {
  const { text, headers } = await ask('POST', `?${query}`);
  return { id: JSON.parse(text).request_id, headers };
};
const release = ({ id }) => ask('DELETE', `/${id}`);

try {
  const first = await approve(HOLD);
  console.log('checked');
  const { ratelimit = '', 'x-ratelimit-remaining': remaining } = first.headers;
  const left = Number(/;r=(\d+)/.exec(ratelimit)?.[1] ?? remaining ?? 0);
  const others = left > 0 ? [await approve(`${HOLD}&hits=${left}`)] : [];
  // With RATE_LIMIT_HEADERS=off it is not known what is left, and there may be room at once.
  const waiting = approve(`${HOLD}&canWait=true`);
  waiting.catch(() => undefined);
  await Promise.all([first, ...others].map(release));
  await release(await waiting);
  console.log('waited and released');
} catch (error) {
  console.error(error.message);
  // What still waits gives up its place.
  process.exit(1);
}

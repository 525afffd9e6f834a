import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

import { startTestApp, type TestApp } from '../../support/app.js';
import { freePort } from '../../support/free-port.js';
import { send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

/** A program of https://github.com/GiGurra/gocc, v0.0.9, or ''. */
const GOCC = process.env.SLUICE_TEST_GOCC ?? '';
const MAXIMUM = 2;
const LIMITS = {
  MAX_REQUESTS: String(MAXIMUM),
  WINDOW_MILLIS: '60000',
  MAX_REQUESTS_IN_QUEUE: '10',
};

(GOCC === '' ? describe.skip : describe)('GoCC and Sluice behind one balancer', () => {
  let gocc: ChildProcess;
  let goccUrl: string;
  let sluice: TestApp;
  let balancer: Server;
  let url: string;
  /** The service that gets a request. */
  let upstreamOf: (path: string) => string;

  beforeAll(async () => {
    const port = await freePort();
    goccUrl = `http://127.0.0.1:${port}`;
    const env = { ...process.env, ...LIMITS, PORT: String(port) };
    gocc = spawn(GOCC, [], { env, stdio: 'ignore' });
    sluice = await startTestApp(LIMITS);
    balancer = createServer((asked, answer) => {
      forward(asked, answer, upstreamOf(asked.url!));
    }).listen(0, '127.0.0.1');
    await once(balancer, 'listening');
    url = `http://127.0.0.1:${(balancer.address() as AddressInfo).port}`;
    await until(() =>
      fetch(`${goccUrl}/healthz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  });
  afterAll(async () => {
    gocc.kill('SIGKILL');
    balancer.close();
    balancer.closeAllConnections();
    await sluice.stop(0);
  });

  const check = async (key: string, query = ''): Promise<number> =>
    (await send(url, 'POST', `/rate/${key}${query}`)).status;

  test('each key has one exact limit if all its requests go to one service', async () => {
    const [ofGocc, ofSluice] = [`g-${uniqueKey()}`, `s-${uniqueKey()}`];
    upstreamOf = (path) => (path.startsWith('/rate/g-') ? goccUrl : sluice.url);
    for (const key of [ofGocc, ofSluice]) {
      const statuses = [];
      for (let n = 0; n < 4; n += 1) statuses.push(await check(key));
      expect(statuses).toEqual([200, 200, 429, 429]);
    }
  });

  test('a key whose requests go to both has the sum of their maxima', async () => {
    const key = uniqueKey();
    let asked = 0;
    upstreamOf = () => [goccUrl, sluice.url][(asked += 1) % 2]!;
    const statuses = [];
    for (let n = 0; n < 8; n += 1) statuses.push(await check(key));
    expect(statuses.filter((status) => status === 200)).toHaveLength(2 * MAXIMUM);
    expect(statuses.slice(2 * MAXIMUM)).toEqual([429, 429, 429, 429]);
  });

  test('a release at the other service frees nothing in the right one', async () => {
    const key = uniqueKey();
    const approve = async (service: string): Promise<string> => {
      upstreamOf = () => service;
      const answer = await fetch(`${url}/rate/${key}`, { method: 'POST' });
      const text = await answer.text();
      return service === goccUrl ? text : (JSON.parse(text) as { request_id: string }).request_id;
    };
    const release = async (service: string, id: string): Promise<number> => {
      upstreamOf = () => service;
      return (await send(url, 'DELETE', `/rate/${key}/${id}`)).status;
    };
    const approvedBy = async (service: string): Promise<number> => {
      const answer = await fetch(`${service}/debug/${key}`);
      return ((await answer.json()) as { NumApprovedThisWindow: number }).NumApprovedThisWindow;
    };
    const ofGocc = await approve(goccUrl);
    const ofSluice = await approve(sluice.url);
    expect(await release(sluice.url, ofGocc)).toBe(404);
    expect(await approvedBy(sluice.url)).toBe(1);
    expect(await release(goccUrl, ofSluice)).toBe(200);
    expect(await approvedBy(goccUrl)).toBe(0);
    expect(await release(sluice.url, ofSluice)).toBe(200);
    expect(await release(sluice.url, ofSluice)).toBe(404);
  });

  test('both put a check that may wait into a queue', async () => {
    upstreamOf = (path) => (path.startsWith('/rate/g-') ? goccUrl : sluice.url);
    for (const service of [goccUrl, sluice.url]) {
      const key = `${service === goccUrl ? 'g' : 's'}-${uniqueKey()}`;
      for (let n = 0; n < MAXIMUM; n += 1) await check(key);
      const left = new AbortController();
      const waiting = fetch(`${url}/rate/${key}?canWait=true`, {
        method: 'POST',
        signal: left.signal,
      });
      const waitingAt = async (): Promise<number> => {
        const answer = await fetch(`${service}/debug/${key}`);
        return ((await answer.json()) as { NumWaiting: number }).NumWaiting;
      };
      await until(async () => (await waitingAt()) === 1);
      left.abort();
      await expect(waiting).rejects.toThrow('aborted');
      await until(async () => (await waitingAt()) === 0);
    }
  });
});

/** Sends a request to a service, and its answer back. A client that disconnects ends both. */
function forward(asked: IncomingMessage, answer: ServerResponse, upstream: string): void {
  const { method, headers } = asked;
  const sent = request(`${upstream}${asked.url}`, { method, headers }, (received) => {
    answer.writeHead(received.statusCode!, received.headers);
    received.pipe(answer);
  });
  sent.on('error', () => answer.destroy());
  answer.on('close', () => sent.destroy());
  asked.pipe(sent);
}

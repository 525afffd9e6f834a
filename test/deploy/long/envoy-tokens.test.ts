import { debugState } from '../../support/debug-state.js';
import { type Answer, send } from '../../support/http-client.js';
import { type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';
import { grpcHost } from '../grpc/grpc-host.js';
import { ROOT } from '../repository-files.js';
import { useAppBehind } from '../gateways/app-behind.js';
import { envoyOfEnvoyGateway, envoyOfTokens } from '../gateways/envoy.js';
import { type Gateway, startGateway } from '../gateways/gateway.js';

/** As the rules files have it. */
const MAXIMUM = 100_000;
const TENANT = { 'x-tenant': 'a' };

const folder = useTemporaryFolder();
const llm = useAppBehind(({ url }) => {
  const used = new URL(url, 'http://llm').searchParams.get('used');
  return used === 'unsaid' ? '{}' : JSON.stringify({ usage: { total_tokens: Number(used) } });
});
let sluice: ReplicaProcess;
let url: string;

/** @param rules a file of `deploy/gateways` */
async function start(gateway: Gateway, rules: string, key: string): Promise<Tokens> {
  const settings = { GRPC_PORT: '0', CONFIG_FILE: `${ROOT}deploy/gateways/${rules}` };
  sluice = await startReplica({ ...settings, RATE_LIMIT_HEADERS: 'off' });
  url = await startGateway(gateway, { sluice: await grpcHost(sluice), app: llm.host, folder });
  return {
    ask: (used, headers = {}) =>
      send(url, 'POST', `/v1/chat/completions?used=${used}`, { ...TENANT, ...headers }),
    untilCounted: async (tokens) => {
      // Envoy tells of an answer after the client has it.
      await until(
        async () => ((await debugState(sluice.url, key)).NumApprovedThisWindow ?? 0) === tokens,
      );
    },
  };
}

interface Tokens {
  /** @param used how many tokens the answer takes, or a text for an answer that does not say it */
  ask(used: number | 'unsaid', headers?: Readonly<Record<string, string>>): Promise<Answer>;
  /** Resolves when this number of tokens counts in the window. */
  untilCounted(tokens: number): Promise<void>;
}

// `npm test` says if Envoy is missing.
const describeWithEnvoy = envoyOfTokens().program === '' ? describe.skip : describe;

describeWithEnvoy('Envoy with an estimate of tokens', () => {
  let tokens: Tokens;
  beforeEach(async () => {
    tokens = await start(envoyOfTokens(), 'envoy-tokens-rules.yml', 'llm:tenant=a');
  });
  const estimate = (max: number) => ({ 'x-max-tokens': String(max) });

  test('takes the estimate, and gives back what an answer has not used', async () => {
    expect((await tokens.ask(120, estimate(500))).status).toBe(200);
    await tokens.untilCounted(120);
    expect((await tokens.ask(500, estimate(500))).status).toBe(200);
    await tokens.untilCounted(620);
  });

  test('counts what an answer has used besides', async () => {
    expect((await tokens.ask(900, estimate(500))).status).toBe(200);
    await tokens.untilCounted(900);
  });

  test('denies a request whose estimate is more than is left, before it costs anything', async () => {
    await tokens.ask(MAXIMUM - 300, estimate(MAXIMUM));
    await tokens.untilCounted(MAXIMUM - 300);
    const denied = await tokens.ask(1, estimate(301));

    expect([denied.status, llm.served.length]).toEqual([429, 1]);
    expect(Number(denied.headers['retry-after'])).toBeGreaterThan(3500);
    expect((await tokens.ask(300, estimate(300))).status).toBe(200);
    await tokens.untilCounted(MAXIMUM);
  });

  test.each([
    ['an estimate of its own', {}, 4000],
    ['one that is no number', { 'x-max-tokens': 'many' }, 4000],
    ['one below 1', { 'x-max-tokens': '-5' }, 1],
  ])('gives a request %s the least that it can take', async (_, headers, expected) => {
    expect((await tokens.ask('unsaid', headers)).status).toBe(200);
    await tokens.untilCounted(expected);
  });

  test('limits no request without a tenant', async () => {
    const answer = await send(url, 'POST', '/v1/chat/completions?used=5');
    expect(answer.status).toBe(200);
    expect((await debugState(sluice.url, 'llm:tenant=a')).Found).toBe(false);
  });
});

describeWithEnvoy('Envoy as Envoy Gateway configures it', () => {
  const ROUTE = 'httproute/default/llm/rule/0/match/0/*';
  const KEY = `default/ai/http:${ROUTE}=${ROUTE},rule-0-match-0=a`;
  let tokens: Tokens;
  beforeEach(async () => {
    tokens = await start(envoyOfEnvoyGateway(), 'envoy-gateway-rules.yml', KEY);
  });

  test('counts the tokens of each answer', async () => {
    const answer = await tokens.ask(120);
    expect([answer.status, answer.headers['x-ratelimit-remaining']]).toEqual([200, `${MAXIMUM}`]);
    await tokens.untilCounted(120);
    expect((await tokens.ask(30)).headers['x-ratelimit-remaining']).toBe(`${MAXIMUM - 120}`);
    await tokens.untilCounted(150);
  });

  test('lets a request pass while any tokens are left, and none when they are used up', async () => {
    await tokens.ask(MAXIMUM - 1);
    await tokens.untilCounted(MAXIMUM - 1);
    expect((await tokens.ask(5000)).status).toBe(200);
    await tokens.untilCounted(MAXIMUM);
    expect((await tokens.ask(1)).status).toBe(429);
    expect(llm.served).toHaveLength(2);
  });

  test('uses up all for an answer with more tokens than the maximum', async () => {
    expect((await tokens.ask(2 * MAXIMUM)).status).toBe(200);
    await tokens.untilCounted(MAXIMUM);
    expect((await tokens.ask(1)).status).toBe(429);
  });

  test('counts nothing of an answer that does not say its tokens', async () => {
    expect((await tokens.ask('unsaid')).status).toBe(200);
    await tokens.ask(7);
    await tokens.untilCounted(7);
  });
});

import { freePort } from '../../support/free-port.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { loadedBy } from '../../support/loaded-modules.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import {
  startOtlpReceiver,
  tracedTo,
  useOtlpReceiver,
} from '../../support/tracing/otlp-receiver.js';
import { callersSpan } from '../../support/tracing/trace-headers.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

/** Wire types: https://protobuf.dev/programming-guides/encoding/#structure */
const BYTES_OF = { 1: 8, 5: 4 } as const;

/** Every text in a protobuf message and its inner messages, including bytes that only look like a text. */
function protobufTexts(message: Buffer): string[] {
  const texts: string[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at];
      if (byte === undefined) throw new RangeError('a message that is cut short');
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const type = varint() % 8;
    if (type === 0) varint();
    else if (type === 2) {
      const length = varint();
      const field = message.subarray(at, at + length);
      if (field.length < length) throw new RangeError('a message that is cut short');
      at += length;
      texts.push(field.toString(), ...textsInside(field));
    } else if (type === 1 || type === 5) at += BYTES_OF[type];
    else throw new RangeError(`no field has the type ${type}`);
  }
  return texts;
}

/** A text and a message have the same wire type. */
function textsInside(field: Buffer): string[] {
  try {
    return protobufTexts(field);
  } catch {
    return [];
  }
}

const folder = useTemporaryFolder();

const NOT_TAKEN = 'the collector does not accept spans; they are lost';
const TAKEN_AGAIN = 'the collector accepts spans again';
const LAST_LOST = 'the collector did not accept the last spans';

const receiver = useOtlpReceiver();
afterEach(killReplicas);

function linesWith({ log }: ReplicaProcess, msg: string): unknown[] {
  return log.filter((line) => line.msg === msg);
}

test('the last spans are sent when the replica stops', async () => {
  const replica = await startReplica({
    ...tracedTo(receiver()),
    OTEL_BSP_SCHEDULE_DELAY: '3600000',
  });
  for (let i = 0; i < 3; i += 1) await approve(replica.url, uniqueKey());

  expect(receiver().spans).toEqual([]);
  expect(await replica.kill('SIGTERM')).toBe(0);
  expect(receiver().spans.map(({ name }) => name)).toEqual(['check', 'check', 'check']);
  expect(linesWith(replica, LAST_LOST)).toEqual([]);
});

test('spans are sent as protobuf by default', async () => {
  const caller = callersSpan();
  const replica = await startReplica({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver().url}/own/path`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=a%20team',
  });
  await send(replica.url, 'POST', ratePath(uniqueKey()), caller.headers);
  await replica.kill('SIGTERM');
  const [sent] = receiver().exports;

  expect(sent?.path).toBe('/own/path');
  expect(sent?.headers).toMatchObject({
    'content-type': 'application/x-protobuf',
    'x-tenant': 'a team',
  });
  const texts = protobufTexts(sent!.body);
  expect(texts).toEqual(expect.arrayContaining(['check', 'sluice.outcome', 'approved']));
  expect(sent!.body.includes(Buffer.from(caller.traceId, 'hex'))).toBe(true);
});

test('a collector that is down is logged in one line, and one more when it is back', async () => {
  const port = await freePort();
  const settings = tracedTo({ url: `http://127.0.0.1:${port}` });
  const replica = await startReplica({ ...settings, OTEL_EXPORTER_OTLP_TIMEOUT: '50' });
  await approve(replica.url, uniqueKey());
  await replica.logged(({ msg }) => msg === NOT_TAKEN);
  await approve(replica.url, uniqueKey());
  const back = await startOtlpReceiver(port);
  try {
    const again = await until(async () => {
      await approve(replica.url, uniqueKey());
      return replica.log.find(({ msg }) => msg === TAKEN_AGAIN);
    });

    expect(back.spans).not.toEqual([]);
    expect(again.lost).toBeGreaterThanOrEqual(1);
    const untilBack = replica.log.slice(0, replica.log.indexOf(again));
    expect(untilBack.filter(({ msg }) => msg === NOT_TAKEN)).toEqual([
      expect.objectContaining({ level: 'warn', code: 'ECONNREFUSED' }),
    ]);
    expect(replica.log.filter(({ msg }) => msg === 'OpenTelemetry')).toEqual([]);
  } finally {
    await back.close();
  }
});

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', NOT_TAKEN],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a%20b=c', NOT_TAKEN],
  ['OTEL_EXPORTER_OTLP_CLIENT_KEY', 'package.json', NOT_TAKEN],
  ['OTEL_EXPORTER_OTLP_CERTIFICATE', '/nowhere', 'OpenTelemetry'],
])('a replica with %s=%s serves, and logs: %s', async (variable, value, msg) => {
  const settings = tracedTo({ url: receiver().url.replace('http:', 'https:') });
  const replica = await startReplica({ ...settings, [variable]: value });
  await approve(replica.url, uniqueKey());
  await replica.logged((line) => line.msg === msg);
  await approve(replica.url, uniqueKey());

  expect(await replica.kill('SIGTERM')).toBe(0);
});

test('a replica stops even if its collector is down, and logs how many spans it lost', async () => {
  const replica = await startReplica(tracedTo({ url: 'http://127.0.0.1:1' }));
  await approve(replica.url, uniqueKey());

  expect(await replica.kill('SIGTERM')).toBe(0);
  expect(linesWith(replica, LAST_LOST)).toHaveLength(1);
  expect(replica.log.at(-1)?.msg).toBe('stopped');
});

test('spans beyond the queue are dropped, with a log line', async () => {
  const replica = await startReplica({
    ...tracedTo(receiver()),
    OTEL_BSP_MAX_QUEUE_SIZE: '1',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
  });
  await until(async () => {
    await Promise.all(Array.from({ length: 20 }, () => approve(replica.url, uniqueKey())));
    return linesWith(replica, 'OpenTelemetry').length > 0;
  });

  expect(JSON.stringify(linesWith(replica, 'OpenTelemetry'))).toMatch(/Dropped \d+ spans/);
});

describe('whether OpenTelemetry is loaded', () => {
  /** The modules of OpenTelemetry except its API, which prom-client loads for exemplars. */
  function ofOpenTelemetry(all: readonly string[]): string[] {
    return all.filter((path) => /@opentelemetry.(?!api\b)/.test(path));
  }

  test.each([
    ['no variable of OpenTelemetry is set', () => ({})],
    ['the SDK is disabled', () => ({ ...tracedTo(receiver()), OTEL_SDK_DISABLED: 'true' })],
  ])('OpenTelemetry is not loaded if %s', async (_case, settings) => {
    const { all, replica } = await loadedBy(settings(), folder);

    expect(all.some((path) => path.includes('ioredis'))).toBe(true);
    expect(ofOpenTelemetry(all)).toEqual([]);
    expect(receiver().spans).toEqual([]);
    expect(replica.log.filter(({ msg }) => String(msg).includes('OpenTelemetry'))).toEqual([]);
  });

  test('OpenTelemetry is loaded if an endpoint is set', async () => {
    const { all } = await loadedBy(tracedTo(receiver()), folder);
    expect(ofOpenTelemetry(all)).not.toEqual([]);
  });

  test.each([
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'one of http/protobuf, http/json'],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'some of otlp, none'],
  ])(
    'nothing is traced if %s is invalid, and a log line says why',
    async (variable, value, takes) => {
      const { all, replica } = await loadedBy(
        { ...tracedTo(receiver()), [variable]: value },
        folder,
      );

      expect(ofOpenTelemetry(all)).toEqual([]);
      expect(replica.log.filter(({ level }) => level === 'warn')).toEqual([
        expect.objectContaining({ variable, takes }),
        expect.objectContaining({
          msg: 'requests are not traced: a variable that says how to send spans is invalid',
        }),
      ]);
    },
  );
});

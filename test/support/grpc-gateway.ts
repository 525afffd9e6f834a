import {
  type ChannelCredentials,
  Client,
  type ClientOptions,
  credentials,
  type ServiceDefinition,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';

import type { RateLimitResponse, Unit } from '../../src/grpc/messages.js';
import { loadProto, RATE_LIMIT_SERVICE } from '../../src/grpc/proto.js';

/** A descriptor in Envoy's form: fields that are left out are not sent. */
export interface AskedDescriptor {
  readonly entries: readonly { readonly key: string; readonly value?: string }[];
  readonly limit?: { readonly requests_per_unit: number; readonly unit: Unit };
  readonly hits_addend?: { readonly value: number };
  readonly is_negative_hits?: boolean;
}

export interface Asked {
  readonly domain?: string;
  readonly descriptors?: readonly AskedDescriptor[];
  readonly hits_addend?: number;
}

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** The gateway gives up after this time, like Envoy's `timeout`. */
  readonly timeoutMillis?: number;
}

/** A call whose answer is still to come. */
export interface PendingCall {
  readonly answer: Promise<RateLimitResponse>;
  cancel(): void;
}

const service = loadProto()[RATE_LIMIT_SERVICE] as unknown as ServiceDefinition;
export const METHOD = service.ShouldRateLimit!;

/** A client that asks like Envoy, on one connection. */
export class Gateway {
  readonly #client: Client;

  constructor(
    port: number,
    creds: ChannelCredentials = credentials.createInsecure(),
    options: ClientOptions = {},
  ) {
    this.#client = new Client(`127.0.0.1:${port}`, creds, {
      // Otherwise clients of the same address share a connection.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      // Node 26 takes no address as the name of a TLS server.
      'grpc.ssl_target_name_override': 'localhost',
      ...options,
    });
  }

  begin(request: Asked, { headers = {}, timeoutMillis }: CallOptions = {}): PendingCall {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const options = timeoutMillis === undefined ? {} : { deadline: Date.now() + timeoutMillis };
    let cancel = (): void => undefined;
    const answer = new Promise<RateLimitResponse>((resolve, reject) => {
      const call = this.#client.makeUnaryRequest(
        METHOD.path,
        METHOD.requestSerialize,
        METHOD.responseDeserialize,
        { domain: 'test', ...request },
        metadata,
        options,
        (error, response) => {
          if (error) reject(error);
          else resolve(response as RateLimitResponse);
        },
      );
      cancel = () => {
        call.cancel();
      };
    });
    // A test that cancels does not await this error.
    answer.catch(() => undefined);
    return { answer, cancel };
  }

  ask(request: Asked, options?: CallOptions): Promise<RateLimitResponse> {
    return this.begin(request, options).answer;
  }

  /** Asks for one key if the template is `{values}`. */
  askFor(key: string, options?: CallOptions): Promise<RateLimitResponse> {
    return this.ask({ descriptors: [of(key)] }, options);
  }

  /** Closes the connection once its calls have ended. */
  close(): void {
    this.#client.close();
  }
}

/** A descriptor for a key if the template is `{values}`. */
export function of(key: string, more: Omit<AskedDescriptor, 'entries'> = {}): AskedDescriptor {
  return { entries: [{ key: 'key', value: key }], ...more };
}

/** Gateways for the tests of one file; the connections of each end with its test. */
export function useGateways(): (
  at: { readonly grpcPort: number },
  creds?: ChannelCredentials,
  options?: ClientOptions,
) => Gateway {
  const gateways: Gateway[] = [];
  afterEach(() => {
    for (const gateway of gateways.splice(0)) gateway.close();
  });
  return ({ grpcPort }, creds, options) => {
    const gateway = new Gateway(grpcPort, creds, options);
    gateways.push(gateway);
    return gateway;
  };
}

/** The name of the status that a call fails with, and its text. Throws if the call succeeds. */
export async function failureOf(
  answer: Promise<unknown>,
): Promise<[code: string | undefined, details: string]> {
  let answered: unknown;
  try {
    answered = await answer;
  } catch (error) {
    const { code, details } = error as ServiceError;
    return [status[code], details];
  }
  throw new Error(`did not fail: ${JSON.stringify(answered)}`);
}

/** The headers that Envoy must add, by their names. */
export function headersOf(response: RateLimitResponse): Record<string, string> {
  return Object.fromEntries(response.response_headers_to_add.map(({ key, value }) => [key, value]));
}

/** The codes of the descriptors, in their order. */
export function codesOf(response: RateLimitResponse): string[] {
  return response.statuses.map(({ code }) => code);
}

import { Client, type ClientReadableStream, credentials } from '@grpc/grpc-js';
import { service } from 'grpc-health-check';

import { until } from './until.js';

type Status = string;

/** The statuses that a watch of one service has received so far. */
export interface WatchedHealth {
  readonly told: readonly Status[];
  /** Resolves when the last status is this one. */
  tells(status: Status): Promise<void>;
  cancel(): void;
}

/** Asks gRPC's health service. */
export class HealthClient {
  readonly #client: Client;

  constructor(grpcPort: number) {
    this.#client = new Client(`127.0.0.1:${grpcPort}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
    });
  }

  check(name: string): Promise<Status> {
    return this.#ask('Check', { service: name }).then(
      (answer) => (answer as { status: Status }).status,
    );
  }

  async list(): Promise<Record<string, Status>> {
    const { statuses } = (await this.#ask('List', {})) as {
      statuses: Record<string, { status: Status }>;
    };
    return Object.fromEntries(Object.entries(statuses).map(([name, { status }]) => [name, status]));
  }

  watch(name: string): WatchedHealth {
    const { path, requestSerialize, responseDeserialize } = service.Watch!;
    const told: Status[] = [];
    const stream = this.#client.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      { service: name },
    ) as ClientReadableStream<{ status: Status }>;
    stream.on('data', ({ status }: { status: Status }) => told.push(status));
    // The watch ends with its service, or is cancelled by the test.
    stream.on('error', () => undefined);
    return {
      told,
      tells: async (status) => {
        await until(() => told.at(-1) === status);
      },
      cancel: () => {
        stream.cancel();
      },
    };
  }

  close(): void {
    this.#client.close();
  }

  #ask(method: 'Check' | 'List', request: object): Promise<unknown> {
    const { path, requestSerialize, responseDeserialize } = service[method]!;
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        (error, answer) => {
          if (error) reject(error);
          else resolve(answer);
        },
      );
    });
  }
}

/** Clients for the tests of one file, each of which ends with its test. */
export function useHealthClients(): (at: { readonly grpcPort: number }) => HealthClient {
  const clients: HealthClient[] = [];
  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
  });
  return ({ grpcPort }) => {
    const client = new HealthClient(grpcPort);
    clients.push(client);
    return client;
  };
}

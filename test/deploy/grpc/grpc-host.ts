import type { ReplicaProcess } from '../../support/replica-process.js';

/** The host and port at which a replica serves gRPC. */
export async function grpcHost(replica: ReplicaProcess): Promise<string> {
  const { grpcPort } = await replica.logged(({ msg }) => msg === 'serving');
  return `127.0.0.1:${String(grpcPort)}`;
}

import { withEach } from '../common/steps.js';
import type { HttpParts } from '../http/routes/routes.js';
import { openPorts, type Ports } from '../http/server/ports.js';
import { httpStatusOf } from '../http/replies/error-statuses.js';
import type { WatchedFiles } from '../config/watched-files.js';
import type { KeyPair } from '../net/key-pair.js';

/** The ports of the service, including the gRPC port. They start and stop together. */
export interface AllPorts extends Ports {
  readonly grpcPort: number | undefined;
  /** Makes health services report the readiness, which has changed. */
  startServing(): Promise<void>;
}

/**
 * Serves on all ports that the settings name.
 * @throws SettingsError if the port or the host can't be used
 */
export async function openAllPorts(
  parts: HttpParts,
  keyPair: WatchedFiles<KeyPair> | undefined,
): Promise<AllPorts> {
  const { GRPC_PORT } = parts.settings;
  const http = await openPorts(parts, keyPair);
  if (GRPC_PORT === undefined) {
    return { ...http, grpcPort: undefined, startServing: () => Promise.resolve() };
  }
  // Loaded only if it is used.
  const { openGrpcPort } = await import('../grpc/grpc-port.js');
  const grpc = await openGrpcPort({ ...parts, httpStatusOf }, keyPair, GRPC_PORT);
  return {
    port: http.port,
    adminPort: http.adminPort,
    grpcPort: grpc.port,
    startServing: () => grpc.startServing(),
    startDraining: () => {
      http.startDraining();
      grpc.startDraining();
    },
    // stopAccepting asks connections of gRPC to end. Their clients send again any request that crosses it.
    endIdle: (millis, hurry) => http.endIdle(millis, hurry),
    endUnowed: () => http.endUnowed(),
    stopAccepting: () => withEach([http, grpc], (port) => port.stopAccepting()),
    cutConnections: () => withEach([http, grpc], (port) => port.cutConnections()),
  };
}

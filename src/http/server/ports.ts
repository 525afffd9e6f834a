import { withEach } from '../../common/steps.js';
import { startDraining } from '../replies/reply.js';
import { connectionBounds } from '../../net/connection-bounds.js';
import type { HttpParts } from '../routes/http-parts.js';
import { createHttpApp, type Surface } from '../routes/routes.js';
import type { WatchedFiles } from '../../config/watched-files.js';
import type { KeyPair } from '../../net/key-pair.js';
import { listen } from './server.js';
import { logUnreadable } from './unreadable-requests.js';

/** The ports of the service, which start and stop together. */
export type Ports = Awaited<ReturnType<typeof openPorts>>;

/** Serves on the ports that the settings name. @throws SettingsError if the port or the host can't be used */
export async function openPorts(parts: HttpParts, keyPair: WatchedFiles<KeyPair> | undefined) {
  const { settings, logger } = parts;
  const { HOST, PORT, ADMIN_PORT, AUTH_TOKENS_FILE, DEBUG_ENDPOINTS } = settings;
  const onUnreadable = logUnreadable(logger, settings);
  const bounds = connectionBounds(settings, parts.metrics, logger);
  const open = async (setting: 'PORT' | 'ADMIN_PORT', port: number, surface: Surface) => {
    const httpApp = createHttpApp(parts, surface);
    const needTokens = AUTH_TOKENS_FILE !== undefined;
    const options = { setting, port, host: HOST, keyPair, onUnreadable, bounds, needTokens };
    const server = await listen(httpApp, options);
    return { app: httpApp.app, server };
  };

  const isShared = ADMIN_PORT === undefined;
  const service = await open('PORT', PORT, {
    limiting: true,
    debugging: isShared && DEBUG_ENDPOINTS,
    telling: isShared,
  });
  const ports = [service];
  if (!isShared) {
    const admin = { limiting: false, debugging: DEBUG_ENDPOINTS, telling: true };
    ports.push(await open('ADMIN_PORT', ADMIN_PORT, admin));
  }
  const servers = ports.map(({ server }) => server);
  return {
    port: service.server.port,
    /** Where `/debug`, `/metrics` and the documents are, if not on the port of the checks. */
    adminPort: ports[1]?.server.port,
    /** Makes every answer from now on ask its client to use another connection, which may lead to another replica. */
    startDraining: (): void => {
      for (const { app } of ports) startDraining(app);
    },
    endIdle: (millis: number, hurry?: AbortSignal) =>
      withEach(servers, (server) => server.endIdle(millis, hurry)),
    endUnowed: () => withEach(servers, (server) => server.endUnowed()),
    stopAccepting: () => withEach(servers, (server) => server.stopAccepting()),
    /** Ends all connections, including those with a request that is partly sent. */
    cutConnections: async (): Promise<void> => {
      bounds.close();
      await withEach(servers, (server) => server.cutConnections());
    },
  };
}

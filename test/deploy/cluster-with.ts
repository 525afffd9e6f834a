import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const NOT_FOUND = { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 };

/** A Kubernetes API for the chart, with a Deployment of `replicas` replicas, or without one. */
export async function clusterWith(
  replicas: number | undefined,
): Promise<{ readonly url: string; readonly close: () => void }> {
  const found: Readonly<Record<string, unknown>> = {
    '/apis/apps/v1': {
      kind: 'APIResourceList',
      groupVersion: 'apps/v1',
      resources: [{ name: 'deployments', kind: 'Deployment', namespaced: true, verbs: ['get'] }],
    },
    ...(replicas !== undefined && {
      '/apis/apps/v1/namespaces/x/deployments/sluice': {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        spec: { replicas },
      },
    }),
  };
  const server = createServer((request, response) => {
    const [path = ''] = request.url!.split('?');
    response.writeHead(path in found ? 200 : 404, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(found[path] ?? NOT_FOUND));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

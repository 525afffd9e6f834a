import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { provided } from '../../support/provided.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { readText } from '../repository-files.js';
import { TRANSLATED } from '../gateways/envoy.js';
import { shippedFile } from '../gateways/shipped-file.js';

/** Of Envoy Gateway, built from its sources. `npm test` has none: that takes a quarter of an hour. */
const EGCTL = provided('SLUICE_TEST_EGCTL');

/** The Gateway and the route that `deploy/gateways/envoy-gateway.yaml` is about. */
const SURROUNDINGS = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: { name: eg }
spec: { controllerName: gateway.envoyproxy.io/gatewayclass-controller }
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: ai, namespace: default }
spec:
  gatewayClassName: eg
  listeners: [{ name: http, protocol: HTTP, port: 8080 }]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: llm, namespace: default }
spec:
  parentRefs: [{ name: ai }]
  rules:
    - backendRefs: [{ name: llm, port: 8000 }]
      matches: [{ path: { type: PathPrefix, value: /v1 } }]
---
apiVersion: v1
kind: Service
metadata: { name: llm, namespace: default }
spec: { clusterIP: 10.0.0.9, ports: [{ port: 8000, targetPort: 8000 }] }
---
`;

const folder = useTemporaryFolder();

/** All objects in a document. */
function objectsIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return [];
  const within = Object.values(value).flatMap(objectsIn);
  return Array.isArray(value) ? within : [value as Record<string, unknown>, ...within];
}

/** With the names of fields as in JSON, and numbers as texts. */
function inJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inJson);
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  const camel = (name: string): string =>
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [camel(name), inJson(each)]),
  );
}

/** The filter, without its timeout, which is a setting of Envoy Gateway; and the limits and the name of the route. */
function rateLimitsIn(yaml: string): unknown {
  const objects = objectsIn(inJson(parse(yaml)));
  const filter = objects.find(
    ({ name, typedConfig }) => name === 'envoy.filters.http.ratelimit' && typedConfig,
  );
  const route = objects.find(({ typedPerFilterConfig }) => typedPerFilterConfig);
  const config = { ...(filter?.typedConfig as object), timeout: undefined };
  return { config, name: route?.name, limits: route?.typedPerFilterConfig };
}

const testWithEgctl = EGCTL === '' ? test.skip : test;

testWithEgctl('Envoy Gateway translates the shipped file as the tests have it', () => {
  const file = join(folder, 'resources.yaml');
  writeFileSync(file, SURROUNDINGS + shippedFile('envoy-gateway.yaml'));
  const args = ['x', 'translate', '--from', 'gateway-api', '--to', 'xds', '-f', file];
  const translated = execFileSync(EGCTL, args, { encoding: 'utf8' });
  expect(rateLimitsIn(translated)).toEqual(rateLimitsIn(readText(TRANSLATED)));
});

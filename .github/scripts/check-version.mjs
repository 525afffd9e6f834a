// `node .github/scripts/check-version.mjs v1.2.3`: fails unless all that a release publishes has this version.
import { readFileSync } from 'node:fs';

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const CHART = 'deploy/helm/sluice/Chart.yaml';
const COMMAND_LINE = 'clients/go/cmd/sluice-client/main.go';
const versions = {
  'package.json': JSON.parse(read('package.json')).version,
  'clients/node/package.json': JSON.parse(read('clients/node/package.json')).version,
  'clients/python/pyproject.toml': /^version = "(.+)"$/m.exec(
    read('clients/python/pyproject.toml'),
  )?.[1],
  [COMMAND_LINE]: /version = "(.+)"$/m.exec(read(COMMAND_LINE))?.[1],
  'package-lock.json': JSON.parse(read('package-lock.json')).version,
  [`version of ${CHART}`]: /^version: (\S+)$/m.exec(read(CHART))?.[1],
  [`appVersion of ${CHART}`]: /^appVersion: '(\S+)'$/m.exec(read(CHART))?.[1],
  'label of the Dockerfile': /image\.version="(.+?)"/.exec(read('Dockerfile'))?.[1],
};

const tag = process.argv[2];
for (const [place, version] of Object.entries(versions)) {
  if (`v${version}` === tag) continue;
  console.error(`${place}: ${version}, but the tag is ${tag}`);
  process.exitCode = 1;
}

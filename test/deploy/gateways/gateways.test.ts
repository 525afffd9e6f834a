import { provided } from '../../support/provided.js';
import { ROOT } from '../repository-files.js';
import { ADDRESS, ANY, BY_ADDRESS, describeGateway, SLASHED } from './gateway-tests.js';
import { nginx } from './nginx.js';
import type { Replacements } from './shipped-file.js';

const NJS = provided('SLUICE_TEST_NJS');

/** The changes for keys of any text, as in docs/gateways.md. */
const WITH_NJS: Replacements = [
  ['worker_processes auto;', `worker_processes auto; load_module ${NJS};`],
  [
    `map $http_x_api_key $sluice_key {
    "~^[A-Za-z0-9._~=+-]{1,200}$" "client:$http_x_api_key";
    default "address:$remote_addr";
  }`,
    `js_path ${ROOT}deploy/gateways; js_import sluice from nginx-key.js; js_set $sluice_key sluice.key;`,
  ],
];

// test/deploy/long/gateways.test.ts has the others.
describeGateway({
  gateway: nginx(),
  keys: BY_ADDRESS,
  showsQuota: true,
  limitsSilence: true,
  keyOf: [
    [SLASHED, ADDRESS],
    [ANY, ADDRESS],
    // `npm test` says if njs is missing.
    ...(NJS === ''
      ? []
      : ([
          [SLASHED, `client:${SLASHED}`, nginx(WITH_NJS)],
          [ANY, `client:${ANY}`, nginx(WITH_NJS)],
        ] as const)),
  ],
});

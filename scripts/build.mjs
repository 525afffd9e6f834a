// `npm run build`: compiles the service to `dist`, and the client to `clients/node/dist`. `npm start` and `npm test` also compile it.
import { build } from './lib/prepare.mjs';

build();

#!/usr/bin/env node
// The command `sluice` of the package.
import './main.js';

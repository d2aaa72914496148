// @ts-check
// Removes what was built; with --all also what was fetched.
//
//     npm run clean -- [--all]
import fs from 'node:fs';
import { entry, Failure, inRoot } from './script.mjs';

const built = [
  ...['build', 'dist', 'licences', 'prebuilds', 'zig-out', '.zig-cache', '.tap'],
  'examples/mnist/out',
];
const fetched = ['.bench', '.deps', 'node_modules'].concat(
  ['jax', 'mnist', 'onnx', 'tfjs'].map((name) => `examples/${name}/node_modules`),
);

await entry(import.meta, (args) => {
  const strange = args.filter((arg) => arg !== '--all');
  if (strange.length > 0) throw new Failure(`npm run clean does not know ${strange.join(' ')}`);
  for (const name of args.includes('--all') ? [...built, ...fetched] : built) {
    fs.rmSync(inRoot(name), { recursive: true, force: true });
  }
  return 0;
});

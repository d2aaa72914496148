// The project's shared fixtures: containers that the original wrote, and damaged ones. They lie beside
// the repository and are no part of it; without them the tests that want them are skipped.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A path in the shared fixtures. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../../../shared/fixtures/${name}`, import.meta.url));
}

/** For the options of a test: false where the fixtures are, else why the test is skipped. */
export const withoutFixtures: string | false = existsSync(fixture('README.md'))
  ? false
  : 'the shared fixtures are not beside the repository';

/** A JSON file of the fixtures. What it holds is described in its `about` or `fields`. */
export function readFixture<T>(name: string): T {
  return JSON.parse(readFileSync(fixture(name), 'utf8')) as T;
}

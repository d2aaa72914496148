import fs from 'node:fs';
import t from 'tap';
import { Failure, inRoot } from '../../scripts/script.mjs';
import { compareVersions, readSharedLibrary } from '../../scripts/shared-library.mjs';

const addon = fs.readFileSync(inRoot('build/Release/loaderx.node'));

t.test('reads the addon of this machine', async (t) => {
  const library = readSharedLibrary(addon);
  const formats: Record<string, string> = { linux: 'ELF', darwin: 'Mach-O', win32: 'PE' };
  t.equal(library.format, formats[process.platform]);
  t.equal(library.machine, process.arch);
  t.ok(library.exports.includes('napi_register_module_v1'));
  t.ok(library.libraries.length > 0);
});

t.test('refuses what is no shared library', async (t) => {
  t.throws(() => readSharedLibrary(Buffer.alloc(0)), Failure);
  t.throws(() => readSharedLibrary(Buffer.from('#!/bin/sh\n'.repeat(10))), Failure);
});

t.test('a damaged library is read or refused, and nothing else', async (t) => {
  const header = 4096;
  for (let at = 0; at < header; at += 3) {
    const damaged = Buffer.from(addon);
    damaged[at] = (damaged[at] ?? 0) ^ 0xff;
    for (const content of [damaged, addon.subarray(0, at * 97)]) {
      try {
        readSharedLibrary(content);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
      }
    }
  }
  t.pass('no other error');
});

t.test('versions are compared by number', async (t) => {
  t.ok(compareVersions('2.9', '2.28') < 0);
  t.ok(compareVersions('2.28', '2.28') === 0);
  t.ok(compareVersions('11.0', '10.15') > 0);
});

import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import t, { type Test } from 'tap';
import { untar, unzip } from '../../scripts/archive.mjs';

interface Member {
  name: string;
  data: string;
  mode?: number;
}

const members: Member[] = [
  { name: 'pack-1.0/bin/tool', data: 'x'.repeat(3000), mode: 0o755 },
  { name: 'pack-1.0/empty', data: '' },
  { name: 'pack-1.0/skipped', data: 'no' },
];

const place = (name: string) =>
  name.endsWith('skipped') ? null : name.slice(name.indexOf('/') + 1);

function check(t: Test, folder: string) {
  t.equal(fs.readFileSync(path.join(folder, 'bin/tool'), 'utf8'), 'x'.repeat(3000));
  t.equal(fs.statSync(path.join(folder, 'bin/tool')).mode & 0o777, 0o755);
  t.equal(fs.readFileSync(path.join(folder, 'empty'), 'utf8'), '');
  t.same(fs.readdirSync(folder).sort(), ['bin', 'empty']);
}

t.test('unzip', async (t) => {
  const folder = t.testdir();
  t.equal(unzip(zip(members), folder, place), 2);
  check(t, folder);
  t.throws(() => unzip(Buffer.alloc(100), folder, place), /not a zip file/);
  t.throws(() => unzip(zip([{ name: 'a/../../up', data: '' }]), folder, place), /outside/);
  const damaged = zip(members);
  damaged.writeUInt32LE(0, damaged.readUInt32LE(damaged.length - 6));
  t.throws(() => unzip(damaged, folder, place), /damaged/);
});

t.test('untar', async (t) => {
  const folder = t.testdir();
  t.equal(untar(tar(members), folder, place), 2);
  check(t, folder);
  t.throws(() => untar(tar([{ name: 'a/../../up', data: '' }]), folder, place), /outside/);
  const short = zlib.gzipSync(zlib.gunzipSync(tar(members)).subarray(0, 1000));
  t.throws(() => untar(short, folder, place), /ends inside/);
});

t.test('untar: long names come in headers of their own', async (t) => {
  const long = `pack/${'d'.repeat(90)}/${'f'.repeat(90)}`;
  const gnu = [{ name: '././@LongLink', data: `${long}\0`, type: 'L' }];
  const record = ` path=${long}\n`;
  const pax = [{ name: 'PaxHeaders/x', data: `${record.length + 3}${record}`, type: 'x' }];
  for (const header of [gnu, pax]) {
    const folder = t.testdir();
    untar(tar([...header, { name: 'pack/shortened', data: 'long' }]), folder, place);
    t.equal(fs.readFileSync(path.join(folder, long.slice(5)), 'utf8'), 'long');
  }
});

function zip(files: readonly Member[]) {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let at = 0;
  for (const { name, data, mode = 0o644 } of files) {
    const packed = zlib.deflateRawSync(data);
    const head = Buffer.alloc(30 + name.length + 4); // 4 bytes of extra field
    head.writeUInt32LE(0x04034b50, 0);
    head.writeUInt16LE(name.length, 26);
    head.writeUInt16LE(4, 28);
    head.write(name, 30);
    const entry = Buffer.alloc(46 + name.length);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(data.length, 24);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE((0o100000 | mode) * 0x10000, 38);
    entry.writeUInt32LE(at, 42);
    entry.write(name, 46);
    local.push(head, packed);
    central.push(entry);
    at += head.length + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...local, ...central, end]);
}

function tar(files: readonly (Member & { type?: string })[]) {
  const blocks = files.flatMap(({ name, data, mode = 0o644, type = '0' }) => {
    const head = Buffer.alloc(512);
    head.write(name, 0);
    head.write(mode.toString(8).padStart(7, '0'), 100);
    head.write(data.length.toString(8).padStart(11, '0'), 124);
    head.write(type, 156);
    head.write('ustar\x0000', 257);
    const body = Buffer.alloc(Math.ceil(data.length / 512) * 512);
    body.write(data);
    return [head, body];
  });
  return zlib.gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

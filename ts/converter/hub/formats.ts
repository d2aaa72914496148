/**
 * Kinds of data files by the ends of their names. `datasets` reads a split as the kind that most of its
 * files are of; only Parquet is read here, so the others are needed to tell when it is not what a split is.
 */

const parquetEnds = ['.parquet', '.geoparquet', '.gpq'] as const;

/** Ends of names that `datasets` reads as something else. */
const otherEnds = new Set(
  [
    'csv tsv json jsonl ndjson arrow txt conll conllu tar xml hdf5 h5 eval toml md lance tsfile vortex zip',
    'fa fasta fna ffn faa frn afa gb gbk genbank fq fastq pdb ent cif mmcif pdf nii glb ply stl',
    'blp bmp dib bufr cur pcx dcx dds ps eps fit fits fli flc ftc ftu gbr gif grib hdf png apng jp2 j2k jpc',
    'jpf jpx j2c icns ico im iim tif tiff jfif jpe jpg jpeg mpg mpeg msp pcd pxr pbm pgm ppm pnm psd bw rgb',
    'rgba sgi ras tga icb vda vst webp wmf emf xbm xpm',
    'aiff au avr caf flac htk svx mat4 mat5 mpc2k ogg paf pvf raw rf64 sd2 sds ircam voc w64 wav nist wavex',
    'wve xi mp3 opus 3gp 3g2 avi asf flv mp4 mov m4v mkv webm f4v wmv wma ogm mxf nut',
  ]
    .join(' ')
    .split(' ')
    .map((end) => `.${end}`),
);

/** Lists of what lies beside pictures and sounds; they are no data of their own. */
const besideMedia = ['metadata.csv', 'metadata.jsonl', 'metadata.parquet'];

/** Of equally frequent ends the first wins, as in `datasets`. */
const preferred = ['.parquet', '.lance', '.vortex', '.arrow', '.jsonl', '.json', '.csv'];

const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

/** All that stands behind a dot: `['.v2', '.parquet']` of `a.v2.parquet`. */
const endsOf = (path: string): readonly string[] =>
  baseOf(path)
    .split('.')
    .slice(1)
    .map((end) => `.${end}`);

const isParquetEnd = (end: string): boolean => (parquetEnds as readonly string[]).includes(end);

/** Whether the file is read here. */
export function isParquet(path: string): boolean {
  return isParquetEnd(endsOf(path).at(-1) ?? '');
}

/** Whether `datasets` would unpack the file and look for Parquet in it. */
export function isWrappedParquet(path: string): boolean {
  const ends = endsOf(path);
  return !isParquet(path) && (ends.some(isParquetEnd) || ends.at(-1) === '.zip');
}

/** Whether `datasets` takes the file for data of any kind. */
export function isData(path: string): boolean {
  return endsOf(path).some((end) => isParquetEnd(end) || otherEnds.has(end));
}

/** The end that says what kind most of the files are of; undefined where none is of a known kind. */
export function kindOf(paths: readonly string[]): string | undefined {
  const counts = new Map<string, { end: string; isBeside: boolean; count: number }>();
  for (const path of paths) {
    const isBeside = besideMedia.includes(baseOf(path));
    for (const end of endsOf(path).map((one) => one.toLowerCase())) {
      const key = `${end} ${isBeside}`;
      const entry = counts.get(key) ?? { end, isBeside, count: 0 };
      entry.count += 1;
      counts.set(key, entry);
    }
  }
  const rank = (end: string): number => {
    const at = preferred.indexOf(end);
    return at < 0 ? preferred.length : at;
  };
  const known = [...counts.values()].filter(({ end }) => isParquetEnd(end) || otherEnds.has(end));
  known.sort(
    (left, right) =>
      Number(left.isBeside) - Number(right.isBeside) ||
      right.count - left.count ||
      rank(left.end) - rank(right.end) ||
      (left.end < right.end ? 1 : -1),
  );
  const end = known[0]?.end;
  return end !== undefined && isParquetEnd(end) ? '.parquet' : end;
}

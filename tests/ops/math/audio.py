import numpy as np

from declare import expect, op, refuses
from domains import normal, positive
from ulps import near


def spectrogram(sound, *, window_size, stride, magnitude_squared):
    """The squares of the transforms of windows; their errors count relative to the sum of the magnitudes."""
    n = 1 << int(window_size - 1).bit_length()
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window_size) / window_size)
    starts = range(0, max(0, len(sound) - window_size + 1), stride)
    shape = sound.shape[1], len(starts), n // 2 + 1
    found, size = np.zeros(shape), np.zeros(shape)
    for k, start in enumerate(starts):
        part = sound[start:start + window_size].T.astype(np.float64) * hann
        found[:, k] = abs(np.fft.rfft(part, n)) ** 2
        size[:, k] = (abs(part).sum(-1) ** 2)[:, None]
    return near(found if magnitude_squared else np.sqrt(found), size if magnitude_squared else np.sqrt(size))


def sounds(d):
    d.set(window_size=d.pick(2, 3, 8, 11, 16, 100), stride=d.integer(1, 20))
    return [d("input", (3001, 3) if d.large else (d.integer(0, 150), d.integer(0, 3)))]


def mel(hertz):
    return 1127 * np.log1p(hertz / 700)


def coefficients(spectrogram, sample_rate, *, upper_frequency_limit, lower_frequency_limit, filterbank_channel_count, dct_coefficient_count):
    bins = spectrogram.shape[-1]
    hertz = np.longdouble(sample_rate) / 2 / (bins - 1)
    low = mel(np.longdouble(lower_frequency_limit))
    spacing = (mel(np.longdouble(upper_frequency_limit)) - low) / (filterbank_channel_count + 1)
    at = mel(np.arange(bins) * hertz)
    at[:int(1.5 + lower_frequency_limit / hertz)] = at[int(upper_frequency_limit / hertz) + 1:] = np.nan  # frequencies that no filter has
    away = abs(at - low - spacing * np.arange(1, filterbank_channel_count + 1)[:, None]) / spacing
    filters = np.where(away < 1, 1 - away, 0)
    logs = np.log(np.maximum(np.sqrt(spectrogram) @ filters.T, 1e-12))
    k, j = np.ogrid[:dct_coefficient_count, :filterbank_channel_count]
    cosines = np.sqrt(2 / np.longdouble(filterbank_channel_count)) * np.cos(np.longdouble(np.pi) * k * (j + 0.5) / filterbank_channel_count)
    return near(logs @ cosines.T, np.maximum(1, abs(logs) @ abs(cosines.T)))


def spectra(d):
    rate, filters = d.pick(8000, 16000, 44100), d.integer(1, 40)
    d.set(upper_frequency_limit=d.pick(rate / 2 - 1, rate / 4, min(4000.0, rate / 2 - 1)), lower_frequency_limit=d.pick(0.0, 20.0, 300.0),
          filterbank_channel_count=filters, dct_coefficient_count=d.integer(1, filters))
    shape = (3, 200, 129) if d.large else (d.integer(0, 2), d.integer(0, 4), d.integer(2, 40))
    return [d("spectrogram", shape), d("sample_rate", of=rate)]


op("AudioSpectrogram", spectrogram, sounds, domain=normal.plain, ulps=2, zero_signs=False, given=dict(window_size=4, stride=2))
op("Mfcc", coefficients, spectra, domain=positive.plain, ulps=2)

# A wave of a quarter of the sample rate is in the middle of the spectrum.
wave = np.tile(np.float32([1, 0, -1, 0]), 6)[:, None]
expect("AudioSpectrogram", [wave], [np.tile(np.float32([0, 1, 2, 1, 0]), (1, 5, 1))], 1e-6, window_size=8, stride=4)
expect("AudioSpectrogram", [wave[:7]], [np.zeros((1, 0, 5), np.float32)], window_size=8, stride=4)
flat = np.ones((1, 1, 9), np.float32)
expect("Mfcc", [np.zeros((1, 1, 9), np.float32), np.int32(8000)], [np.float32([[[np.log(1e-12) * np.sqrt(2 / 3) * 3, 0]]])], 1e-5,
       filterbank_channel_count=3, dct_coefficient_count=2)

refuses("AudioSpectrogram", [wave[:, 0]], "input", "[24]", window_size=8, stride=4)
refuses("AudioSpectrogram", [wave], "window_size", "1", window_size=1, stride=4)
refuses("AudioSpectrogram", [wave], "window_size", "2147483648", window_size=2**31, stride=4)
refuses("AudioSpectrogram", [wave], "stride", "0", window_size=8, stride=0)
refuses("Mfcc", [flat, np.int32([8000])], "sample_rate", "[1]")
refuses("Mfcc", [flat[0], np.int32(8000)], "spectrogram", "[1, 9]")
refuses("Mfcc", [flat[:, :, :1], np.int32(8000)], "spectrogram", "[1, 1, 1]")
refuses("Mfcc", [flat, np.int32(0)], "sample_rate is 0")
refuses("Mfcc", [flat, np.int32(4000)], "upper_frequency_limit", "4000", "2000")
refuses("Mfcc", [flat, np.int32(8000)], "lower_frequency_limit", "5000", lower_frequency_limit=5000.0)
refuses("Mfcc", [flat, np.int32(8000)], "lower_frequency_limit", "-1", lower_frequency_limit=-1.0)
refuses("Mfcc", [flat, np.int32(8000)], "upper_frequency_limit", "inf", upper_frequency_limit=np.inf)
refuses("Mfcc", [flat, np.int32(8000)], "filterbank_channel_count", "0", filterbank_channel_count=0)
refuses("Mfcc", [flat, np.int32(8000)], "dct_coefficient_count", "41", dct_coefficient_count=41)

"""Folders of corpora as their publishers lay them out, with tones for recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from overtone.audio import encode_wav

RATE = 16_000


def tone(path: Path, hertz: float = 300.0, seconds: float = 0.1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    t = np.arange(int(RATE * seconds)) / RATE
    path.write_bytes(encode_wav(0.2 * np.sin(2 * np.pi * hertz * t), RATE))


def text(path: Path, lines: str, encoding: str = "utf-8") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines.encode(encoding))


def ravdess(home: Path) -> None:
    for actor in ("01", "02"):
        for emotion in range(1, 9):
            tone(home / f"Actor_{actor}" / f"03-01-0{emotion}-01-02-01-{actor}.wav")
    tone(home / "Actor_01" / "03-01-05-02-01-02-01.wav")


def tess(home: Path) -> None:
    for name in ("OAF_Fear/OAF_back_fear", "OAF_neutral/OA_bite_neutral", "YAF_pleasant_surprised/YAF_dog_ps"):
        tone(home / f"{name}.wav")


def savee(home: Path) -> None:
    for name in ("DC/a01", "JE/sa15", "KL/su03", "JK/n30"):
        tone(home / "AudioData" / f"{name}.wav")


def emodb(home: Path) -> None:
    for name in ("03a01Fa", "08b10Wc", "16a05Ld", "11b09Ab"):
        tone(home / "wav" / f"{name}.wav")


def cremad(home: Path) -> None:
    for name in ("1001_DFA_ANG_XX", "1002_IEO_HAP_HI", "1040_ITH_SAD_X", "1091_WSI_NEU_LO"):
        tone(home / "AudioWAV" / f"{name}.wav")
    text(
        home / "VideoDemographics.csv",
        "ActorID,Age,Sex,Race,Ethnicity\n1001,51,Male,Caucasian,Not Hispanic\n1002,21,Female,Caucasian,Not Hispanic\n"
        "1040,42,Female,Asian,Not Hispanic\n1091,61,Male,African American,Not Hispanic\n",
    )


def meld(home: Path) -> None:
    head = "Sr No.,Utterance,Speaker,Emotion,Sentiment,Dialogue_ID,Utterance_ID,Season,Episode,StartTime,EndTime\n"
    when = '8,21,"00:16:16,059","00:16:21,731"\n'
    text(
        home / "train_sent_emo.csv",
        f'{head}1,"I can\x92t, and you?",Chandler,neutral,neutral,0,0,{when}'
        f"2,No!,The Interviewer,joy,positive,0,1,{when}",
    )
    text(home / "dev_sent_emo.csv", f"{head}1,Oh my God,Phoebe,sadness,negative,0,0,{when}")
    text(home / "test_sent_emo.csv", f"{head}1,Why?,Mark,surprise,positive,0,0,{when}")
    for name in ("train_splits/dia0_utt0", "train_splits/dia0_utt1", "dev_splits_complete/dia0_utt0"):
        tone(home / f"{name}.wav")
    tone(home / "output_repeated_splits_test" / "dia0_utt0.wav")
    tone(home / "output_repeated_splits_test" / "final_videos_testdia0_utt0.wav")  # copies that the publisher left


def iemocap(home: Path) -> None:
    one = home / "Session1" / "dialog"
    text(
        one / "EmoEvaluation" / "Ses01F_impro01.txt",
        "% [START_TIME - END_TIME] TURN_NAME EMOTION [V, A, D]\n\n"
        "[6.2901 - 8.2357]\tSes01F_impro01_F000\tneu\t[2.5000, 2.5000, 2.5000]\n"
        "C-E2:\tNeutral;\t()\nC-E3:\tNeutral;\t()\nC-E4:\tNeutral;\t()\nC-F1:\tNeutral;\t(curious)\n"
        "A-E3:\tval 3; act 2; dom  2;\t()\nA-F1:\tval 3; act 2; dom  1;\t()\n\n"
        "[10.0100 - 11.3925]\tSes01F_impro01_M001\txxx\t[2.5000, 2.5000, 2.5000]\n"
        "C-E2:\tNeutral;\t()\nC-E3:\tAnger; Frustration;\t()\nC-E4:\tSadness;\t()\nA-E3:\tval 3; act 2; dom  2;\t()\n",
    )
    text(one / "EmoEvaluation" / "._Ses01F_impro01.txt", "\0\1\2", "latin-1")  # of a Mac
    text(
        one / "EmoEvaluation" / "Categorical" / "Ses01F_impro01_e2_cat.txt", "Ses01F_impro01_F000 :Neutral state; ()\n"
    )
    text(
        one / "transcriptions" / "Ses01F_impro01.txt",
        "Ses01F_impro01_F000 [006.2901-008.2357]: Excuse me.\n"
        "Ses01F_impro01_M001 [010.0100-011.3925]: [LAUGHTER] Do you have your forms?\n",
    )
    two = home / "Session2" / "dialog"
    text(
        two / "EmoEvaluation" / "Ses02M_script01_1.txt",
        "% [START_TIME - END_TIME] TURN_NAME EMOTION [V, A, D]\n\n"
        "[1.0 - 3.2]\tSes02M_script01_1_F002\texc\t[4.0, 4.0, 3.0]\nC-E1:\tExcited;\t()\n",
    )
    for name in ("1/Ses01F_impro01/Ses01F_impro01_F000", "1/Ses01F_impro01/Ses01F_impro01_M001"):
        session, rest = name.split("/", 1)
        tone(home / f"Session{session}" / "sentences" / "wav" / f"{rest}.wav")
    tone(home / "Session2" / "sentences" / "wav" / "Ses02M_script01_1" / "Ses02M_script01_1_F002.wav")


def esd(home: Path) -> None:
    tone(home / "0011" / "Angry" / "train" / "0011_000371.wav")
    tone(home / "0011" / "Neutral" / "evaluation" / "0011_000001.wav")
    tone(home / "0016" / "Sad" / "0016_001051.wav")
    tone(home / "0003" / "Surprise" / "test" / "0003_001401.wav")
    tone(home / "0001" / "Happy" / "0001_000701.wav")
    text(home / "0011" / "0011.txt", "0011_000001\tThe nine the eggs, I keep.\tNeutral\n0011_000371 Let it be. Angry\n")
    text(home / "0016" / "0016.txt", "0016_001051\tYou’re late.\tSad\n", "cp1252")
    text(home / "0003" / "0003.txt", "0003_001401\t打远一看。\t惊喜\n", "utf-16")
    text(home / "0001" / "0001.txt", "0001_000701\t他很高兴。\t快乐\n", "gb18030")


def emovdb(home: Path) -> None:
    for name in ("bea_Amused/amused_1-15_0001", "sam_Sleepy/sleepiness_1-28_0002", "josh/Neutral/neutral_1-28_0003"):
        tone(home / f"{name}.wav")
    text(
        home / "cmuarctic.data",
        '( arctic_a0001 "Author of the danger trail, Philip Steels, etc." )\n'
        '( arctic_a0002 "Not at this particular case, Tom, apologized Whittemore." )\n'
        '( arctic_b0003 "It is not this one." )\n',
    )


def expresso(home: Path) -> None:
    sounds = home / "audio_48khz"
    for name in ("ex01_happy_00085", "ex01_default_emphasis_00010", "ex02_whisper_00003"):
        speaker, style = name.split("_")[:2]
        tone(sounds / "read" / speaker / style / "base" / f"{name}.wav")
    tone(sounds / "read" / "ex03" / "default" / "longform" / "ex03_default_longform_00001.wav", seconds=4.0)
    both = sounds / "conversational" / "ex04-ex01" / "angry-sad" / "ex04-ex01_angry-sad_001.wav"
    both.parent.mkdir(parents=True)
    t = np.arange(RATE * 5) / RATE
    pair = np.stack([0.2 * np.sin(2 * np.pi * hertz * t) for hertz in (200, 500)], axis=1)
    import soundfile

    soundfile.write(both, pair, RATE)
    text(home / "read_transcriptions.txt", "ex01_happy_00085\tYou *did* it!\nex02_whisper_00003\tBe quiet.\n")
    text(
        home / "VAD_segments.txt",
        "# file/channel\tsegments\n"
        "ex04-ex01_angry-sad_001/channel1\t(0.50,1.75) (2.00,2.20) (3.00, 4.50)\n"
        "ex04-ex01_angry-sad_001/channel2\t(1.80,2.90)\n"
        "ex03_default_longform_00001\t(0.00,1.50) (2.00,3.75)\n",
    )
    text(home / "splits" / "train.txt", "# train\nex01_happy_00085\nex04-ex01_angry-sad_001\t(2.5s,)\n")
    text(home / "splits" / "dev.txt", "ex02_whisper_00003\n")
    text(home / "splits" / "test.txt", "ex04-ex01_angry-sad_001\t(,2.5s)\n")


def msp_podcast(home: Path) -> None:
    for name in ("0001_0008", "0001_0009", "0153_0020_01"):
        tone(home / "Audios" / f"MSP-PODCAST_{name}.wav")
    text(
        home / "Labels" / "labels_consensus.csv",
        "FileName,EmoClass,EmoAct,EmoVal,EmoDom,SpkrID,Gender,Split_Set\n"
        "MSP-PODCAST_0001_0008.wav,N,2.2,4.0,2.6,30,Male,Test1\n"
        "MSP-PODCAST_0001_0009.wav,X,3.7,3.5,3.7,Unknown,Unknown,Train\n"
        "MSP-PODCAST_0153_0020_01.wav,U,3.7,3.5,3.7,39,Female,Development\n",
    )
    text(home / "Transcripts" / "MSP-PODCAST_0001_0008.txt", "but it is what it is\n")


def vocalsound(home: Path) -> None:
    for name in ("f0003_0_cough", "f0003_0_throatclearing", "m0004_1_laughter"):
        tone(home / "audio_16k" / f"{name}.wav")
        tone(home / "audio_44k" / f"{name}.wav")
    people = '["f0003", "female", "24", "USA", "English", "no"]', '["m0004", "male", "61", "India", "Hindi", "no"]'
    text(home / "meta" / "all_meta.json", f"[{people[0]}, {people[1]}]")
    text(home / "meta" / "tr_meta.json", f"[{people[0]}]")
    text(home / "meta" / "te_meta.json", f"[{people[1]}]")


def nonverbal(home: Path) -> None:
    for name in ("coughing/5MSY_4_4_0_30_0_0_0", "sighing/39HV_7_12_1_23_0_0_0", "throat-clearing/0C1S_6_8_0_11_0_1_1"):
        tone(home / "dataset" / f"{name}.wav")
    text(home / "dataset" / "Nonverbal_Vocalization_metadata.json", "{}")


def esc50(home: Path) -> None:
    rows = "1-1000-A-10.wav,1,10,rain,True,1000,A\n2-1001-B-11.wav,2,11,sea_waves,False,1001,B\n"
    rows += "5-1002-A-24.wav,5,24,coughing,False,1002,A\n"
    text(home / "meta" / "esc50.csv", f"filename,fold,target,category,esc10,src_file,take\n{rows}")
    for row in rows.splitlines():
        tone(home / "audio" / row.split(",")[0])


def common_voice(home: Path) -> None:
    head = "client_id\tpath\tsentence\tup_votes\tdown_votes\tage\tgender\taccents\tlocale\tsegment\n"
    one, two, three = ("a" * 128, "b" * 128, "c" * 128)
    rows = [
        f'{one}\tcommon_voice_en_1.wav\t"Quoted, he said.\t2\t0\tfourties\tfemale_feminine\t\ten\t\n',
        f"{two}\tcommon_voice_en_2.wav\tSecond sentence.\t2\t1\tseventies\tmale\t\ten\t\n",
        f"{three}\tcommon_voice_en_3.wav\tThird sentence.\t2\t0\t\t\t\ten\t\n",
    ]
    text(home / "validated.tsv", head + "".join(rows))
    text(home / "train.tsv", head + rows[0])
    text(home / "test.tsv", head + rows[1])
    for n in (1, 2, 3):
        tone(home / "clips" / f"common_voice_en_{n}.wav")


def librispeech(home: Path) -> None:
    folder = home / "test-other" / "1688" / "142285"
    tone(folder / "1688-142285-0000.flac")
    text(folder / "1688-142285.trans.txt", "1688-142285-0000 THERE'S IRON THEY SAY AND I KNOW IT\n")
    text(home / "SPEAKERS.TXT", ";ID  |SEX| SUBSET |MINUTES| NAME\n1688 | M | test-other | 8.05 | Andy Glover\n")


def speechocean(home: Path) -> None:
    for part, speaker, name in (("train", "0001", "000010011"), ("test", "0003", "000030012")):
        tone(home / "WAVE" / f"SPEAKER{speaker}" / f"{name}.WAV")
        text(home / part / "wav.scp", f"{name}\tWAVE/SPEAKER{speaker}/{name}.WAV\n")
        text(home / part / "utt2spk", f"{name}\t{speaker}\n")
        text(home / part / "text", f"{name}\tWE CALL IT BEAR\n")
        text(home / part / "spk2age", f"{speaker}\t{6 if part == 'train' else 25}\n")
        text(home / part / "spk2gender", f"{speaker}\t{'m' if part == 'train' else 'f'}\n")


def table(home: Path) -> None:
    for n in (1, 2):
        tone(home / "sounds" / f"{n}.wav")
    text(
        home / "labels.csv",
        "file,speaker,sex,age,emotion,intensity,event,words,language,licence,split\n"
        "sounds/1.wav,ann,female,34,Happiness,strong,laughing,It is late.,en-GB,CC-BY-4.0,train\n"
        "sounds/2.wav,,,,,,,,,,\n",
    )


FOLDERS: dict[str, Callable[[Path], None]] = {
    "common-voice": common_voice,
    "cremad": cremad,
    "emodb": emodb,
    "emovdb": emovdb,
    "esc50": esc50,
    "esd": esd,
    "expresso": expresso,
    "iemocap": iemocap,
    "librispeech": librispeech,
    "meld": meld,
    "msp-podcast": msp_podcast,
    "nonverbal": nonverbal,
    "ravdess": ravdess,
    "savee": savee,
    "speechocean": speechocean,
    "table": table,
    "tess": tess,
    "vocalsound": vocalsound,
}

"""The phrases with which a reply commits to a choice, refuses, or takes a choice back, as patterns for `extract`.

They have a separate file, so that a new phrase is one more line in it. The texts are already in lower case and NFKC.
"""

from __future__ import annotations

import re
from itertools import groupby

_W = r"(?<![\wà-ÿ'])"  # a word starts here


def _compile(*parts: str) -> re.Pattern[str]:
    """Compile the parts to one pattern of alternatives. For speed, neighbouring parts that begin with `_W` share one
    `_W`."""
    runs = [(at_word, [p.removeprefix(_W) for p in run]) for at_word, run in groupby(parts, lambda p: p.startswith(_W))]
    return re.compile("|".join((_W if w else "") + "(?:" + "|".join(f"(?:{p})" for p in run) + ")" for w, run in runs))


_LINK = (
    r"(?:\s*(?:\b(?:is|was|would be|will be|should be|must be|has to be|could be|might be|may be|seems to be|seems|"
    r"appears to be|remains|becomes|comes out as|then|here|likely|probably|most likely|most probably|definitely|"
    r"clearly|therefore|thus|indeed|simply|still|actually|obviously|certainly|surely|i think|i believe|in my opinion|"
    r"imo)\b|[:=→,]|->|=>|--?|[–—]))+"
)
_NOUN = (
    r"(?:a[nsw]{2,4}[er]{1,2}|option|choice|selection|response|pick|guess|verdict|prediction|conclusion|statement|"
    r"description|solution|letter)"
)
_ADJ = (
    r"(?:correct|right|best|final|most|likely|probable|appropriate|suitable|accurate|fitting|closest|better|matching|"
    r"true|only|best-fitting|best-matching|chosen|selected|my|logical|plausible|reasonable)"
)
_OF = (
    r"(?:\s+(?:to|for|of|from|in|among|that|which)\s+(?:this|the|your|that|these|best|fits?|matches|describes?|"
    r"question|audio|clip|recording|options?|given|speaker|speaker's|voice|emotion|four|three|two|choices|here|it|"
    r"multiple|multiple-choice|most|would|above|provided|based|on)(?:\s+(?:question|audio|clip|recording|options?|"
    r"voice|speaker|speaker's|emotion|choices|it|best|this|the|tone|provided|above|given|heard|situation|background|"
    r"sound|choice|fits?|matches|describes?)){0,4})?"
)

# Each pattern ends where the choice is expected: declared final, called the answer, or leaned towards.
FINAL = _compile(
    rf"{_W}final\s+(?:{_NOUN}\b)?(?:\s+(?:choice|option|letter))?{_LINK}",
    r"最终(?:的)?(?:答案|选择|选项)\s*(?:是|为|应该是|:)*",
    r"最終(?:的な)?(?:回答|答え)\s*(?:は|:)*",
)
ANSWER = _compile(
    rf"{_W}(?:{_ADJ}\s+)*{_NOUN}(?:\s+(?:choice|option|letter|number))?{_OF}{_LINK}",
    rf"{_W}(?:{_ADJ}\s+)+(?:\w+\s+)?\w+{_OF}\s+(?:is|would be|must be|should be|:)(?:\s+(?:likely|probably|definitely|"
    rf"clearly))*",
    rf"{_W}(?:selected|chosen|choose|ans|correct|best(?:\s+(?:match|fit))|result|label|"
    rf"output)\s*(?:{_NOUN}\s*)?(?:[:=→]|->|\bis\b)+",
    rf"{_W}(?:die\s+)?(?:richtige|korrekte|beste|finale|endgültige|meine)?\s*(?:antwort|lösung|wahl|"
    rf"auswahl)(?:\s*(?:ist|lautet|wäre|also|daher|somit|wahrscheinlich|wohl|vermutlich|am ehesten|die|hier|:))+",
    rf"{_W}(?:richtig|korrekt)\s+(?:ist|wäre)(?:\s+(?:also|daher|die))*",
    rf"{_W}(?:la\s+|ma\s+)?(?:bonne\s+|meilleure\s+)?(?:réponse|option|choix|solution)(?:\s+(?:correcte?|finale?|"
    rf"exacte?|appropriée|juste))?(?:\s*(?:est|serait|semble être|donc|probablement|sans doute|la|l'|:))+",
    rf"{_W}(?:la\s+|mi\s+)?(?:mejor\s+)?(?:respuesta|opción|alternativa)(?:\s+(?:correcta|final|adecuada|más probable|"
    rf"más adecuada))?(?:\s*(?:es|sería|parece ser|por tanto|probablemente|la|:))+",
    rf"{_W}(?:a\s+)?(?:resposta|opção|alternativa)(?:\s+(?:correta|certa|final))?(?:\s*(?:é|seria|a(?=\s+[a-z]\b)|:))+",
    rf"{_W}(?:het\s+)?(?:juiste\s+|correcte\s+)?antwoord(?:\s*(?:is|:))+",
    rf"{_W}(?:chang(?:e|ing|ed)|switch(?:ing|ed)?|revis(?:e|ing|ed)|updat(?:e|ing|ed)|correct(?:ing|ed))\s+(?:my|the|"
    rf"this|it|that)?\s*(?:{_NOUN}\s+)?(?:from\s+\W?[a-j]\W?\s+)?to",
    rf"{_W}(?:la\s+)?(?:risposta|opzione)(?:\s+(?:corretta|giusta|finale))?(?:\s*(?:è|sia|sarebbe|la|l'|:))+",
    r"(?:الإجابة|الجواب|الاجابة|الخيار)(?:\s+(?:الصحيحة|الصحيح|النهائية))?\s*(?:هي|هو|:)*",
    r"(?:правильный\s+)?ответ\s*(?:[:—–-]|это)+",
    r"(?:正确|最佳|最合适的|我的|所以|因此)?(?:的)?(?:答案|选项|选择)(?:应该|应|可能|大概|最可能|就)?\s*(?:是|为|选|:|,)+",
    r"(?:答え|正解|回答|正答|正しい(?:答え|選択肢|もの)|最も適切な(?:もの|選択肢|答え))\s*(?:は|:|、)+",
    r"(?:정답|답)\s*(?:은|는|:)+",
)
LEAN = _compile(
    rf"{_W}(?:i|we|i'd|i'll|i'm|i am|let's|let me|will|would|to|must|should|can|and|so|just|have to|had to|"
    rf"probably)\s+(?:\w+\s+){{0,3}}?(?:choose|pick|select|take|prefer|favou?r|go(?:ing)? (?:with|for)|went with|say|"
    rf"vote for|opt for|lean(?:ing)?(?: more)? towards?|lean to|lean|settl(?:e|ing) (?:on|for)|guess|answer(?: with)?|"
    rf"stick(?:ing)? with|conclude|bet on|choosing|picking|selecting|chose|picked|selected|suspect|believe|"
    rf"think)\b(?:\s*(?:that|it's|it is|it would be|it must be|:|on|with|the|would be))*",
    rf"{_W}(?:choose|choosing|chose|pick|picking|picked|select|selecting|selected|go with|going with|"
    rf"went with)(?=\s+\W?[a-j]\b)",
    rf"{_W}(?:it's|it is|it was|that's|that is|this is|it must be|must be|it should be|it has to be|it would be|"
    rf"that would be|that makes it|it could be|it might be|could be|might be)(?:\s+(?:most likely|likely|probably|"
    rf"definitely|clearly|surely|certainly|then|therefore|obviously|just|either|maybe|perhaps))*",
    rf"{_W}(?:(?:no|nope|wait|hm+|oops|sorry|rather|actually)\s*(?:[,:—–]|-+|\.\.+|…)\s*)+",
    rf"{_W}(?:therefore|thus|hence|so|definitely|probably|clearly|most likely|likely|maybe|perhaps|obviously|ergo|"
    rf"surely|guess|i'm certain it's|my money is on|my vote is|leaning)(?:\s*[,:]|\s+it(?:'s|\s+is|\s+must be|"
    rf"\s+has to be))?",
    rf"{_W}(?:points? (?:me )?(?:clearly |strongly )?(?:to|towards?)|pointing (?:to|towards?)|match(?:es|"
    rf"ing)?(?: best)?(?: with)?|corresponds? (?:best |most closely )?(?:to|with)|consistent with|aligns? (?:best |"
    rf"most closely |well )?with|suggests?|indicat(?:es|ing)|supports?|supporting|favou?rs|leads? (?:me )?to|which is|"
    rf"leav(?:es|ing)(?: us with)?|mak(?:es|ing)|fits? (?:best )?(?:with|under)|sounds? (?:most )?like|"
    rf"best (?:described|captured|matched|represented) (?:by|as)|falls under|in favou?r of|choosing|selecting|picking|"
    rf"nearest to|closest to|(?:voice|tone|delivery) says)",
    r"(?:→|->|=>|⇒|∴)",
    rf"{_W}(?:i\.e\.|that is to say|but(?=\s+\W?[a-j]\W*$))\s*,?",
    rf"{_W}(?:all|everything|every\s+\w+)\b[^.\n]{{0,40}}?\b(?:except(?:\s+for)?|but|besides|apart from)",
    rf"{_W}(?:i meant(?: to say)?|i mean|make that|scratch that|correction|without (?:a |any )?doubt|"
    rf"no doubt(?: about it| about that)?|no question)\s*[,:;]?(?:\s+(?:it's|it is))?",
    r"(?:我(?:会|认为|觉得|想)?)?(?:应该|应|故|所以|因此|就)?(?:选择|选|是)(?:了|:)*",
    rf"{_W}(?:either|both|between|torn between)",
)
NOUN_BEFORE_LETTER = re.compile(
    r"(?:the\s+|la\s+|die\s+|die\s+|as\s+)?(?:option|choice|letter|answer|statement|opción|opcion|antwort|auswahl|"
    r"buchstabe|l'option|la lettre|lettre|letra|opção|opzione|réponse|respuesta|选项|選択肢|記号|"
    r"(?:the\s+)?(?:correct|right|best)\s+(?:answer|option|choice)\s*:?)\s*[:#]?\s*"
)
# Nouns that have a letter as their name: the letter after one does not name an option.
NAMED_BY_LETTER = re.compile(
    r"\b(?:an?|return|grade of|speaker|person|vitamin|plan|section|grade|note|chord|key|level|class|group|channel|"
    r"track|room|gate|platform|type|mr|mrs|dr|team|row|block|building|exit|terminal|figure|part|appendix|clip|sample|"
    r"dear|hepatitis|side|in)\s+$"
)
NAMED_BY_LETTER_AFTER = re.compile(r"\s*[-–]?\s*(?:major|minor|flat|sharp|level|side)\b")

# The words after a letter that is the subject: "B is correct", "B fits best", "B选项正确".
_GOOD = (
    r"(?:correct|right|answer|best|choice|option|accurate|appropriate|likely|suitable|fitting|closest|true|fit|match|"
    r"one|winner|pick|better|stronger|convincing)\b"
)
TAIL = _compile(
    rf"\s*(?:is|seems|appears|looks|sounds|feels|would be|must be|should be|was|has to be|remains)\s+(?:(?:to be|"
    rf"likely|probably|definitely|clearly|therefore|thus|indeed|then|by far|obviously|the|my|most|more|best|only|"
    rf"closest|final|right|correct|accurate|much|far|surely|certainly|actually|still|single|overall|slightly|a|an|"
    rf"like|what i'd)\s+)*{_GOOD}",
    r"\s*(?:is\s+)?(?:clearly\s+|also\s+)?best\s+(?:fits|matches|describes|captures|explains|represents|reflects|"
    r"suits|supported|aligns)",
    r"\s*(?:fits|matches|describes|captures|explains|suits|works|reflects|aligns)(?:\s+[\w']+){0,6}?\s+(?:best|better|"
    r"most|well|perfectly|exactly|closely|accurately)\b",
    r"\s*it\s+is\b",
    r"\s*,?\s*(?:i think|i guess|i believe|i'd say|i would say|most likely|probably|definitely)\s*(?:[.!,]|$)",
    r"\s*is\s+what\s+(?:i|we)(?:'d|\s+would|'ll)?\s+(?:choose|chose|pick|picked|say|go with|select)",
    r"\s*is\s+my\s+(?:final\s+)?(?:answer|choice|pick|guess|selection)",
    r"\s*ist\s+(?:die\s+)?(?:also\s+)?(?:richtig|korrekt|beste|passt|am wahrscheinlichsten)",
    r"\s*est\s+(?:la\s+|le\s+)?(?:donc\s+)?(?:bonne|correcte?|meilleur|juste|plus\s+(?:probable|appropri))",
    r"\s*es\s+(?:la\s+|el\s+)?(?:opción\s+|respuesta\s+)?(?:correct|mejor|más\s+(?:probable|adecuad))",
    r"\s*é\s+(?:a\s+)?(?:corret|cert|melhor)",
    r"\s*(?:选项|项)?(?:才)?(?:是)?(?:最)?(?:正确|对的|合适|符合|佳|准确)",
    r"\s*(?:です|だと思|でしょう|だ。|が(?:正解|正しい|最も|一番)|を選)",
    r"\s*(?:가|이|번이|번)?\s*(?:정답|맞)",
    r"\s*(?:✅|✓|✔|☑|\((?:correct|right|my answer|selected)\)|←|<-+)",
)

NEGATION = re.compile(
    r"\b(?:not|n't|don't|doesn't|never|cannot|can't|isn't|wasn't|wouldn't|shouldn't|couldn't|hardly|doubt|neither|nor|"
    r"no way|than|instead of|no (?:sign|hint|trace|evidence|indication|reason)|unlike|excludes?|excluding|except|"
    r"rule[sd]? out|ruling out|eliminat\w+|discard\w*|reject\w*|wrong|incorrect|least|worst|false|nicht|kein\w*|pas|"
    r"jamais|nunca|não|non|against|dismiss\w*)\b|不|没|排除|除了"
)
NOT_A_NEGATION = re.compile(
    r"(?:no|little) doubt|(?:not?|n't|cannot) be anything (?:other than|else than|but)|nothing (?:other than|but)|"
    r"without (?:a |any )?doubt|not only|why not|no question|not (?:entirely |completely |100% |totally )?(?:sure|"
    r"certain)|wrong with|(?:can't|cannot|hard to|impossible to|difficult to) (?:miss|overlook|ignore|mistake)"
)
NEGATED_AFTER = re.compile(
    r"\s*[)\]\"']*(?:,?\s*[(\"][^()\"\n]{1,80}[)\"])?\s*(?:would (?:only|miss|not|never|be (?:too|worse|hurtful|"
    r"harmful|inappropriate|insensitive|dismissive|out of place|the wrong))\b|(?:is|was|are|seems?|looks?|sounds?|"
    r"would be|can be|could be|should be)\s+(?:(?:\w+ly|also|just|quite|very|far|too|most|more|much|thus|then|"
    r"therefore|even|still|a|an)\s+){0,2}(?:not|wrong|incorrect|out|unlikely|ruled out|eliminated|excluded|less|false|"
    r"absent|missing|inconsistent|off|implausible|improbable|no)\b|isn't|doesn't|does not|can't|cannot|won't|wouldn't|"
    r"didn't|don't|do not|,?\s*which (?:is|would be) (?:not|wrong|incorrect|false)|ist (?:falsch|nicht)|n'est|no es|"
    r"est faux|不|(?:选项)?(?:是)?错|ではな|じゃな|は違)"
)
CLAUSE_EDGE = re.compile(
    r"[.!?;:,\n。!?;,、→⇒]|=>|\b(?:but|so|however|because|since|and|therefore|thus|hence|yet|although|though|aber|"
    r"mais|pero|sondern)\b|但|所以|而"
)
SENTENCE_EDGE = re.compile(r"[!?;。！？…\n]+[\"')\]]*|\.+[\"')\]]*(?=\s|$)")
# The text before a full stop that does not end a sentence: an abbreviation, or the letter of a menu's line.
NOT_AN_END = re.compile(
    r"(?:(?<![\w.])(?:e\.g|i\.e|vs|mr|mrs|ms|dr|cf|approx|resp|z\.b|d\.h)|(?:^|[\n.!?;]\s*)[(\[\"']?[a-h])$"
)
# For the reader of option words, a clause also ends at brackets and dashes, and before a new subject after "and".
CLAUSE_END = re.compile(
    r"[,、，();:–—→]|\s-+\s|=>|\b(?:but|so|however|although|though|while|because|since|therefore|thus|hence|yet|"
    r"overall|whereas|then|which|and(?=\s+(?:it|it's|he|he's|she|she's|they|there|this|that|not|so|yet)\b))\b"
)
TURN = re.compile(
    r"\b(?:but(?! also\b)|however|yet|nevertheless|nonetheless|(?:is|are|was|were) (?:really|actually|in fact)|aber|"
    r"jedoch|mais|cependant|pero|sin embargo)\b|但|しかし|でも"
)
MARKED_NO = re.compile(r"\s*[)\]]?\s*[:=|–(\[-]+\s*(?:(?:no|false|absent|not)\b|[✗✘❌])|\s*[✗✘❌]")
CONCLUDING = re.compile(r"\b(?:so|therefore|thus|hence|overall)\W*$")  # the start of a concluding clause
HYPOTHETICAL = re.compile(
    r"(?:\s+[\w'-]+){0,4}?\s+would\s+(?!(?:\w+ly |most |best )*(?:be|fit|suit|work|help|match|make|serve|describe|do|"
    r"let|give|ease|soothe|calm|comfort|cheer|lift|keep)\b)"
)
UNREAL = re.compile(r"\b(?:would|could|might|may|wäre|serait|sería)\b|'d\b")
CONCEDED_AFTER = re.compile(
    r"\s*(?:[(\[]?[a-h][)\]]?\s+)?(?:is|are|was|seems|would be|could be|might be|may be|"
    r"remains)\s+(?:\w+\s+)?(?:possible|plausible|tempting|conceivable|a possibility|a candidate|close|second|"
    r"the runner-up)\b"
)
BESIDES = re.compile(r"\b(?:rather than|instead of|not|as opposed to|and not|more than|over)\b.*", re.S)
# The text before a mention that the clause states about its subject: "it is", "sounds like", "I would call this".
COMPLEMENT = re.compile(
    r"(?:\b(?:is|are|was|were|be|been|it's|that's|there's|he's|she's|they're|sounds?|sounded|seems?|seemed|appears?|"
    r"appeared|hear|heard|say|call(?: (?:this|it|that))?|as|hence|to|like|towards?|indicates?|suggests?|shows?|"
    r"conveys?|expresses|reveals|means|meaning|choose|pick|select|recommend|estimate|count|conclude|makes (?:it|this|"
    r"that))|:)(?:\s+(?!(?:and|or|than)\b)[\w'-]+){0,3}\s*[\"'(]?$"
)
SUGGESTED = re.compile(r"\b(?:why not|how about|what about)\b")
TAG_QUESTION = re.compile(
    r",\s*(?:is|isn't|are|aren't|was|wasn't|does|doesn't|do|don't|right|no|correct|eh)\b[^,?]{0,12}\?\s*$"
)
POLAR = re.compile(
    r"(?:^\W*|[.!?;\n…,:–—]\s*|\b(?:so|actually|then|hence|therefore|is|it's|say|think|be|answer|but|oh|um|hmm|well|"
    r"clear|definitely|certainly|clearly|probably|likely|surely|absolutely)\s+)\"?(yes|yeah|yep|yup|ja|oui|sí|si|sim|"
    r"да|네|affirmative|absolutely(?! yes| no| not)|indeed|no|nope|nah|nein|non|não|nao|нет|아니요|negative)\b"
)
CONDITION = re.compile(
    r"\b(?:if|unless|otherwise|assuming|suppose|supposing|provided that|in case|whether|wenn)\b|(?:^|[,.;] ?)falls\b|"
    r"如果|若|もし"
)
NOT_A_CONDITION = re.compile(
    r"\bif (?:i|we)(?:'m| am|'d| had| have| must| were| was| need| should| could)?(?: really| absolutely)?(?: to|"
    r" forced to| have to| only| pressed)?\s*(?:guess|choose|pick|say|select|decide|answer|bet|forced|hear\w*|"
    r"understand|understood|heard|pressed|make|made|take)|\bif (?:i|we) (?:had|have|were)(?: forced| pressed)? to\b|"
    r"\bif (?:forced|pressed|anything|you ask me|pushed|i may|i'm not mistaken|you listen)|\bas if\b|even if|"
    r"sounds? (?:like|as) if|wenn ich (?:raten|wählen|mich)"
)
QUESTION = re.compile(
    r"^\W*(?:is|are|could|can|should|would|might|does|do|did|was|what|which|why|how|shall|may|ist|est-ce|¿)\b.*\?\s*$"
)
OTHERS = re.compile(
    r"\b(?:(?:some|others|one|people|you|someone|listeners|many)\s+(?:\w+\s+){0,2}?(?:think|say|argue|guess|assume|"
    r"believe|choose|pick|suggest|expect)|tempt\w*|at first|initially|originally|(?:initial|original|"
    r"earlier) (?:\w+ )?(?:guess|thought|impression|instinct|choice|answer|pick|reaction|hunch)|first (?:thought|"
    r"glance|impression|instinct|guess|inclination|i thought)|my first|i (?:thought|was thinking)|going to say|"
    r"mistaken for|confused with|might (?:seem|appear|suggest)|on the surface|alternatives?\s*:|(?:previous|earlier|"
    r"other|user's|user|example|transcript|another|speaker's own|wrong|incorrect|second|alternative|runner-up|"
    r"next best|format|sample)\s+(?:\w+\s+)?(?:answer|option|choice|response|guess|format)\b|grader|evaluator|"
    r"ignore (?:the|all|any|your|previous)|disregard|full marks|for example|e\.g\.|such as|zuerst|d'abord|"
    r"al principio|一开始|最初)"
)
CORRECTION = re.compile(
    r"\b(?:actually|wait|correction|sorry|scratch that|second thoughts?|change my|changing my|instead(?! of)|i meant|"
    r"i mean|oops|my mistake|revis\w+|reconsider\w*|re-?(?:evaluat|examin|assess|check)\w*|edit|listening again|upon|"
    r"replay\w*|let me correct|rethink\w*|no,|nope,|hold on|on reflection|re-?listen\w*|strike that|not [a-j],? but|"
    r"correct that|eigentlich|doch|en fait|plutôt|en realidad|mejor dicho)|不对|更正|等等|其实|いや|やっぱり|訂正"
)
# A choice before one of these is taken back, without another choice.
RETRACTION = re.compile(
    r"(?<![\w'])(?:wait|hold on|scratch that|strike that|let me re-?\w+|on second thoughts?|i take that back|"
    r"i made a mistake|my mistake|correction)\b|等等|不对"
)
CONCLUSION = re.compile(
    r"\b(?:so|therefore|thus|hence|overall|in conclusion|to conclude|conclusion|ultimately|finally|in the end|"
    r"in summary|to sum up|final|all in all|consequently|as a result|this means|that means|that leaves|i\.e|"
    r"in other words|which makes|making|in total|altogether|adds? up to|given (?:all )?(?:this|that|these)|based on|"
    r"considering|accordingly|ergo|in short|daher|somit|donc|por (?:lo )?tanto|taking everything|weighing|putting)\b|"
    r"所以|因此|综上|总之|故|したがって|よって|→|=>|⇒|∴"
)
CONTRAST = re.compile(
    r"\b(?:but|however|yet|still|though|although|nevertheless|rather|aber|jedoch|mais|cependant|pero|sin embargo)\b|"
    r"但|しかし|でも"
)
INDECISION = re.compile(
    r"can't decide|cannot decide|can not decide|hard to (?:choose|decide|say which|(?:say|tell|make out)\W*$)|"
    r"undecided|toss-?up|could (?:also )?(?:equally )?be (?:any|either|both)|(?:might|could|"
    r"may) be [^.;\n]{1,40}[,;] (?:or )?(?:it )?(?:might|could|may)(?: also| well| just as well)? be |"
    r"either (?:one )?(?:could|would|works|is fine)|both (?:are|seem|fit|could|options)|equally (?:likely|plausible|"
    r"possible|valid|well)|or (?:maybe|perhaps|possibly) |[.!…] or [(\[]?[a-h]\b|not sure which|yes and no|"
    r"tell them apart|can't (?:really )?(?:say|tell) (?:which|whether)|cannot (?:say|tell) (?:which|whether)|"
    r"in equal (?:parts|measure)|any of (?:them|these|the above)|all of the above|can't choose|cannot choose|"
    r"unable to decide|impossible to choose|(?:not|n't) (?:be )?(?:specified|determined|stated|known)|unspecified|"
    r"无法(?:决定|选择)"
)
OFF_MENU = re.compile(
    r"\bnone of (?:the(?! other)|these|those|them)|\bneither (?:of|option|one|a nor|answer)|\bno (?:correct|suitable|"
    r"matching) (?:option|answer|choice)|not (?:listed|among the|in the (?:list|options)|one of the)|以上都不|都不是|"
    r"どれも|aucune? (?:de|des)|keine? der|ninguna de"
)
REFUSAL = re.compile(
    r"(?:can't|can not|cannot|unable to|not able to|am not capable|not equipped to|don't have the (?:ability|"
    r"capability)|do not have the (?:ability|capability)|couldn't|could not|incapable of|not possible (?:for me )?to|"
    r"impossible to|difficult to)\s*(?:\w+\s+){0,4}?(?:listen|hear|process|access|analy[sz]e|play|open|determine|tell|"
    r"assist|help|answer|identify|provide|interpret|infer|assess|say|detect|evaluate|judge|know|make|comply|respond|"
    r"perceive|classify|listening|hearing|processing|recogni[sz]e|discuss|comment|speculate|guess)|no (?:audio|sound|"
    r"recording|clip|attachment)\b|(?:didn't|did not|don't|do not|haven't|have not) (?:\w+ )?(?:receive|see|hear|find|"
    r"detect|have access|know|have enough)|text-based|only (?:process|read|handle|work with) text|language model|"
    r"please (?:provide|upload|share|attach|send|re-?upload)|decline|any (?:audio|sound|recording|attachment)|"
    r"お答えでき|音声が|don't make guesses|i'm sorry|i apologi[sz]e|i am sorry|not enough information|insufficient|"
    r"i have no idea|no idea|i won't|i will not|i refuse|i'd rather not|not comfortable|against my|not sure\b|unclear|"
    r"inaudible|audio (?:is|was|seems|appears) (?:missing|empty|silent|corrupt|not)|nicht (?:hören|anhören|"
    r"verarbeiten|möglich|beurteilen|bestimmen)|leider|kann (?:ich )?(?:\w+\s+){0,4}nicht|désolé|ne peux pas|"
    r"je n'ai pas|lo siento|no puedo|无法|不能|抱歉|对不起|听不到|没有(?:收到|听到)|申し訳|できません|聞こえません|"
    r"不明|わかりません"
)

YES = ("yes", "yeah", "yep", "yup", "ja", "oui", "sí", "si", "sim", "да", "네", "affirmative", "absolutely", "indeed")
YES_CJK = ("是", "对", "有", "はい", "ええ")
NO_CJK = ("不", "否", "没有", "いいえ")

# Words that may follow a bare "A" if it is a letter and not the article.
AFTER_LETTER = frozenset(
    """is was because since as and or but based due which that i with for given from in if it's it fits matches
    describes seems would must should looks sounds ist weil und oder est et ou es porque y por although than where
    over instead more better the this there these my here to answer final however therefore appears captures
    """.split()  # noqa: SIM905
)

# Idioms that do not name an option, even if an option has the same words.
IDIOM = re.compile(
    r"\b(?:(?:good|great|interesting|tricky|tough|excellent) question|(?:happy|glad|sad|surprised|afraid) to (?:say|"
    r"help|hear|assist|report|see|answer))\b"
)
IMPERATIVE = re.compile(r"\W*(?:stay|keep|remain|try|be|get|take|go|tell|call|don't)\b")
# Sentences about answering and not about the recording: thanks, offers, announcements, reservations.
COURTESY = re.compile(
    r"\W*(?:(?:please|so|and|but|ok|okay|sure|well|certainly|of course|alright|hmm|though)\b\W*)*(?:let me (?:know|"
    r"think|see|explain|listen|analy[sz]e|break|take|go through|walk)|feel free|don't hesitate|do not hesitate|"
    r"would you like|do you (?:want|need)|(?:does|is) (?:that|this) (?:make|help|what|ok|okay|right)|"
    r"is there anything|i(?:'m| am|'d be| would be) (?:always |more than )?(?:here|happy|glad|available)\b|i(?:'m|"
    r" am) (?:quite |fairly |pretty |very |reasonably |not (?:entirely |completely |quite |100% )?)?(?:sure|certain|"
    r"confident)\W*$|(?:i )?hope (?:this|that|it)|if you(?:'d| would|'re| are| have| need| want| like)|can i help|"
    r"happy to|glad to|thank you\W*$|thanks\W*$|thanks? (?:you )?for (?:the|this|your|sharing|providing|uploading|"
    r"listening|sending) ?(?:the|your|me|this|audio|clip|recording|question|file|sound)*\W*$|you're welcome|"
    r"want me to|shall i|should i|have a (?:nice|great|good|wonderful|lovely)|note that|keep in mind|i(?:'ve|"
    r" have)? (?:now |just |carefully )?listened\b|i (?:might|may|could) be (?:wrong|mistaken)|"
    r"as an ai\b[^.!?]*\b(?:sure|certain)|(?:good|great|interesting) question|here(?:'s| is) my)(?!\w)"
)
# Words that only frame an answer: "what I heard is …".
FRAME = frozenset(
    """it it's its is are be was of to in i'd i i'm say said think believe guess hear heard can sound sounds
    sounding like speaker speaker's speakers voice tone person seems seem appears there there's would answer
    that that's this final
    option choice correct best most likely probably definitely certainly surely obviously clearly very quite rather
    pretty really slightly mostly
    more overall so therefore thus background he he's she she's they they're their his her as being feeling feels
    emotion mood here what remains remaining and yes wait no actually hmm well okay ok just simply both at with by pace
    speed speaking talking from kind only my sort somewhat bit little
    """.split()  # noqa: SIM905
)
PICKING = frozenset(
    """pick choose chose select go going i'll you your listed list options ones of sure for one right on number guess my
    bet let's option would be if had have must based audio clip recording question answer here here's""".split()  # noqa: SIM905
)
JUDGED = re.compile(
    r"\s*(?:yes|no|true|false|correct|incorrect|wrong|right|likely|unlikely|possible|impossible|plausible|"
    r"not (?:\w+ )?(?:present|heard|likely|correct|right|audible|plausible)|doesn't|fits|matches|present|absent|✅|✓|"
    r"✔|❌|✗|✘)(?!\w)"
)
# Words of a sentence about the recording, and of talk with the speaker.
ABOUT = re.compile(
    r"\b(?:speaker|speakers|voice|voices|tone|sounds|sounded|audio|clip|recording|background|emotions?|emotional|mood|"
    r"pace|pitch|intonation|utterance|speech|narrator|caller|delivery|prosody|speaking|talking|accent|scene|setting|"
    r"location|conversation|environment|atmosphere|timbre|attitude|noise|ambient|audible|volume|gender|(?:can|could|"
    r"is|are|be) (?:be )?(?:clearly )?(?:hear|heard)|(?:he|she|they|person|man|woman|girl|boy|guy|lady|user|someone|"
    r"somebody)(?:'s|'re| is| are| was| were| sounds?| seems?| appears?| speaks?| talks?)|(?:words?|sentence|option|"
    r"answer) (?:is|are|was|were))\b"
)
NOT_TALK = re.compile(
    r"\b(?:(?:i|we|you)(?:'d| would| can| could| will| do|'ll| can't| cannot| don't| do not| didn't)?(?: also| just|"
    r" only| even| still| \w+ly)? (?:think|believe|hear|heard|detect(?:ed)?|noticed?|said|say|tell|guess|perceive|"
    r"sense|describe|classify|label|call|choose|pick|select|go with|feel|conclude|(?:first |initially |"
    r"originally )?(?:thought|assumed|suspected|expected|considered)|assume|reply|respond|answer|count|estimate|judge|"
    r"identify|recogni[sz]e|catch|make out|pick up|discern|distinguish|infer|deduce|observe|suggest|recommend|advise|"
    r"reckon|imagine|suppose|figure|gather|find|bet|presume|take (?:it|this|that|them|him|her)|put|place|file|rate|"
    r"mark|note|lean|settle|mean|miss|make (?:it|that))|i(?:'d| would) (?!be\b|love|like|appreciate)\w+|i(?:'m| am|"
    r" remain| feel) (?:\w+ )?(?:sure|confident|certain|convinced|positive|inclined|hearing|guessing|going with|"
    r"picking up|leaning)|to me|for me|in my (?:opinion|view)|my (?:\w+ )?(?:answer|choice|guess|pick|vote|impression|"
    r"bet|opinion|verdict|assessment|conclusion|analysis|reading|view|take|sense|feeling|suggestion|recommendation|"
    r"judge?ment|ears?|count|tally|money|gut|hunch)|you gave|(?:we|you)(?:'re| are) hearing|you provided|"
    r"your (?:question|audio|clip|recording)|if i may|if i (?:had|have) to|i\.e|i'm afraid(?=\W*$)|tells (?:us|me)|"
    r"if you (?:listen|ask)(?: me)?|(?:puts?|places?|brings?|gives?|leaves?|takes?) (?:us|me))(?!\w)"
)
TALK = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|we(?!'re\b| are\b| have\b| get\b)|you|you're|you've|your|let's|let me|please|thanks?)\b"
)
EXPLETIVE = re.compile(r"\b(?:it's|it is|it was|that's)(?: (?!(?:on|in|at|from)\b)\w+)?\s*$")
CONCEDED = re.compile(r"^\W*(?:although|though|even though|while|whereas|despite|unlike|granted)\b[^,]*,")
CONCESSION = re.compile(
    r"\b(?:although|(?<!as )though|even though|despite|granted)\b[^,]*$|^\W*(?:while|whereas)\b[^,]*$"
)
REPORTED = re.compile(
    r"\b(?:(?:says?|said|saying)(?! (?:it|this)\b)|mentions?|mentioned|tells(?! us| me| of)|"
    r"(?<!is )(?<!are )(?<!was )told|talk(?:s|ing|ed)? about|states|stated|asks|asked|explains|uses the word|"
    r"describes|discusses|recounts|remembers|reads|sings about|speak(?:s|ing)? (?:about|of)|"
    r"complains)\b(?!.*(?:,(?! who\b| which\b)|\b(?:but|while|yet|in an?|with an?)\b))"
)
TEXT_NEGATION = re.compile(
    r"\b(?:no|than|nothing|without|lacks?|lacking|absence of|trace of|little room for|too \w+ (?:for|to be)|hint of|"
    r"touch of|far from|opposed to|n't|aren't|weren't|didn't|anything but)\b"
)

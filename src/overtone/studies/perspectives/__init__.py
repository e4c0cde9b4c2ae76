"""Does tuning on the perspectives of readers and writers carry over to empathetic speech understanding?"""
